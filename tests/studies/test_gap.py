"""Error and tau against values computed by hand, and standalone runs: finished, unfinished, twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from nas_core.errors import ConfigError, DataError
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.writing import write_json
from nas_core.locks import is_locked
from nas_core.space import Architecture
from nas_core.studies.base import Subject
from nas_core.studies.gap import GAP, GapConfig, agreement, train_standalone
from tests.studies.trainers import SPACE, Trainer
from tests.toys import ROOT

EVERY = [Architecture({"width": width}) for width in (1, 2, 3)]


def test_figures_by_hand() -> None:
    result = agreement([5.0, 4.0, 3.0, 4.5], [4.0, 4.5, 2.0, 3.5])
    assert result.error == pytest.approx((1 + 0.5 + 1 + 1) / 4) and result.bias == pytest.approx(2.5 / 4)
    assert result.tau == pytest.approx((4 - 2) / 6)  # of six pairs two are in another order


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "supernet.pt"
    path.write_bytes(b"weights")
    return path


def test_finished_runs_are_kept_and_others_done_again(checkpoint: Path, tmp_path: Path) -> None:
    failing = Trainer(fails=3)
    with pytest.raises(DataError, match="out of memory"):
        train_standalone(failing, checkpoint, SPACE, EVERY, tmp_path, {})
    assert [record["architecture"]["width"] for record in read_jsonl(tmp_path / "standalone.jsonl")] == [1, 2]
    mended = Trainer()
    runs = train_standalone(mended, checkpoint, SPACE, EVERY, tmp_path, {})
    assert mended.trained == 1
    assert [(run.architecture.number("width"), run.metrics["loss"]) for run in runs] == [(1, 8.0), (2, 7.0), (3, 6.0)]
    assert [run.architecture for run in train_standalone(mended, checkpoint, SPACE, EVERY[::-1], tmp_path, {})] == (
        EVERY[::-1]
    )


def test_the_study_compares_several_supernets_with_one_set_of_runs(checkpoint: Path, tmp_path: Path) -> None:
    trainer, same = Trainer(), Trainer()
    same.score = lambda architecture: {"loss": 9.0 - architecture.number("width")}
    subjects = [Subject("one", checkpoint, trainer), Subject("same", checkpoint, same)]
    result = GAP.run(subjects, GapConfig(architectures=3), tmp_path)
    first, second = result.summary.rows
    assert (first["error"], first["tau"], first["bias"]) == (1.0, pytest.approx(1.0), 1.0)
    assert (second["error"], second["better"]) == (0.0, 1.0)
    assert (trainer.trained, same.trained) == (3, 0)


def records(path: Path, *more: Mapping[str, object], examples: str = "valid") -> Path:
    for architecture in EVERY:
        own = {"architecture": architecture.to_dict(), "metrics": {"loss": 2.0 * architecture.number("width")}}
        append_jsonl(path, {**own, **({"examples": examples} if examples else {})})
    for record in more:
        append_jsonl(path, record)
    return path


def test_results_that_are_there_already_train_nothing(checkpoint: Path, tmp_path: Path) -> None:
    trainer = Trainer()
    config = GapConfig(standalone=records(tmp_path / "runs.jsonl"))
    result = GAP.run([Subject("one", checkpoint, trainer)], config, tmp_path)
    assert trainer.trained == 0 and result.summary.rows[0]["tau"] == pytest.approx(-1.0) and len(result.notes) == 1
    silent = GapConfig(standalone=records(tmp_path / "silent.jsonl", examples=""))
    assert "not compared" in GAP.run([Subject("one", checkpoint, trainer)], silent, tmp_path).notes[1]


def test_another_test_set_is_said_before_more_is_trained(checkpoint: Path, tmp_path: Path) -> None:
    train_standalone(Trainer(), checkpoint, SPACE, EVERY[:1], tmp_path, {})
    other = Trainer(key="other")
    with pytest.raises(DataError, match="1 of 1"):
        GAP.run([Subject("one", checkpoint, other)], GapConfig(architectures=3), tmp_path)
    two = [Subject("one", checkpoint, Trainer()), Subject("other", tmp_path / "other.pt", other)]
    with pytest.raises(DataError, match="--data"):
        GAP.run(two, GapConfig(architectures=3), tmp_path / "b")
    assert other.trained == 0 and not (tmp_path / "b").exists()


def test_a_diverged_training_is_named_and_leaves_no_record(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=EVERY[0].key):
        train_standalone(Trainer(), checkpoint, SPACE, EVERY[:1], tmp_path, {"loss": "nan"})
    assert not (tmp_path / "standalone.jsonl").exists()


def test_networks_of_other_settings_are_not_mixed(checkpoint: Path, tmp_path: Path) -> None:
    train_standalone(Trainer(), checkpoint, SPACE, EVERY[:2], tmp_path, {})
    for trainer, changes, value in ((Trainer(data="elsewhere"), {}, "elsewhere"), (Trainer(), {"loss": "99"}, "99")):
        with pytest.raises(ConfigError, match=value):
            train_standalone(trainer, checkpoint, SPACE, EVERY, tmp_path, changes)
    assert len(train_standalone(Trainer(data="elsewhere"), checkpoint, SPACE, EVERY[:2], tmp_path, {})) == 2
    checkpoint.write_bytes(b"other weights")
    with pytest.raises(ConfigError, match="checkpoint"):
        train_standalone(Trainer(), checkpoint, SPACE, EVERY[:2], tmp_path, {})


def test_a_mistyped_setting_does_not_bind_the_folder(checkpoint: Path, tmp_path: Path) -> None:
    class Strict(Trainer):
        def standalone_command(self, architecture: Architecture, folder: Path, changes: Mapping[str, str]) -> list[str]:
            if "los" in changes and architecture == EVERY[-1]:
                raise ConfigError("no setting los")
            return super().standalone_command(architecture, folder, changes)

    with pytest.raises(ConfigError, match="los"):
        train_standalone(Strict(), checkpoint, SPACE, EVERY, tmp_path, {"los": "4"})
    assert not (tmp_path / "standalone.json").exists()
    write_json(tmp_path / "standalone.json", {"settings_of": "", "changes": {"los": "4"}})  # of one killed before
    assert len(train_standalone(Strict(), checkpoint, SPACE, EVERY, tmp_path, {"loss": "4"})) == 3


STUDY = """
import sys
from pathlib import Path
from nas_core.studies.gap import train_standalone
from tests.studies.trainers import SPACE
from tests.toys import ROOT, ToySupernet

class Slow(ToySupernet):
    def training_data(self):
        return {"data": "images"}

    def standalone_command(self, architecture, folder, changes):
        report = "import os, time; open('pid.part', 'w').write(str(os.getpid())); os.rename('pid.part', 'pid')"
        return [sys.executable, "-S", "-c", f"import os; os.chdir({str(folder)!r}); {report}; time.sleep(60)"]

train_standalone(Slow(SPACE), Path(sys.argv[1]), SPACE, [SPACE.smallest()], Path(sys.argv[2]), {})
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_training_runs_twice_when_its_study_is_ended(
    checkpoint: Path, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "out"
    run_folder = out / "standalone" / SPACE.smallest().key
    study = subprocess.Popen([sys.executable, "-c", STUDY, str(checkpoint), str(out)], cwd=ROOT)
    try:
        wait_for(lambda: (run_folder / "pid").exists())
    finally:
        study.send_signal(number)
        study.wait()
    training = int((run_folder / "pid").read_text())
    if number == signal.SIGTERM:
        assert study.returncode == 128 + signal.SIGTERM and not is_locked(run_folder / "train.lock")
        with pytest.raises(ProcessLookupError):
            os.kill(training, 0)
        return
    try:
        with pytest.raises(ConfigError, match="has left a training in"):
            train_standalone(Trainer(), checkpoint, SPACE, EVERY[:1], out, {})
    finally:
        os.kill(training, signal.SIGKILL)
    wait_for(lambda: trained_again(checkpoint, out))


def trained_again(checkpoint: Path, out: Path) -> bool:
    """Whether the lock of a training that was killed is given back."""
    with suppress(ConfigError):
        return len(train_standalone(Trainer(), checkpoint, SPACE, EVERY[:1], out, {})) == 1
    return False


def wait_for(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.02)
