"""Further training until standalone quality: how many updates it took, what was kept, and going on."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from nas_core.errors import ConfigError
from nas_core.files.journal import append_jsonl
from nas_core.space import Architecture
from nas_core.studies import STUDIES, StudyResult, Subject
from nas_core.studies.base import Lines
from nas_core.studies.close_gap import CloseGapConfig
from tests.studies.trainers import Trainer, python
from tests.toys import ToySupernet

STANDALONE = {1: 8.5, 2: 7.75, 3: 8.0}
"""Losses from scratch by width; inherited ones are 9, 8 and 7, so that the last needs no further training."""


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "supernet.pt"
    path.write_bytes(b"weights")
    return path


@pytest.fixture
def standalone(tmp_path: Path) -> Path:
    path = tmp_path / "standalone.jsonl"
    for width, loss in STANDALONE.items():
        append_jsonl(
            path, {"architecture": {"width": width}, "metrics": {"loss": loss}, "examples": "valid", "updates": 100}
        )
    return path


def closed(
    subjects: Mapping[str, ToySupernet], checkpoint: Path, out: Path, standalone: Path, **options
) -> StudyResult:
    every = [Subject(name, checkpoint, supernet) for name, supernet in subjects.items()]
    settings = {"every": 20, "most_updates": 60, **options}
    return STUDIES.get("close-gap").run(every, CloseGapConfig(standalone=standalone, **settings), out)


def test_updates_until_standalone_quality(checkpoint: Path, standalone: Path, tmp_path: Path) -> None:
    trainer = Trainer()
    result = closed({"one": trainer}, checkpoint, tmp_path / "out", standalone)
    # 9 - .5 is reached after 50 updates, which is seen after 60; 8 - .25 after 25, seen after 40
    assert [row["updates"] for row in result.rows] == [60, 40, 0] and trainer.trained == 2
    assert [row["best"] for row in result.rows] == pytest.approx([8.4, 7.6, 7.0])
    (figures,) = result.summary
    assert (figures["updates"], figures["reached"], figures["saved"]) == (
        pytest.approx(100 / 3),
        1.0,
        pytest.approx(2 / 3),
    )
    assert list(result.details["curves"]["one"]["1"]) == ["0", "20", "40", "60"]
    assert isinstance(result.picture, Lines) and result.picture.levels["network 2"] == 7.75
    assert result.picture.panels["network 2"]["one"] == ([0.0, 20.0, 40.0], pytest.approx([8.0, 7.8, 7.6]))
    closed({"one": trainer}, checkpoint, tmp_path / "out", standalone, architectures=2)
    assert trainer.trained == 2  # all of it is read


def test_networks_that_stay_behind_count_with_all_updates(checkpoint: Path, standalone: Path, tmp_path: Path) -> None:
    trainer = Trainer()
    for _ in range(2):
        result = closed({"one": trainer}, checkpoint, tmp_path / "out", standalone, train={"ends": "20"})
        assert [row["updates"] for row in result.rows] == [None, None, 0]
        assert (result.summary[0]["updates"], result.summary[0]["reached"]) == (40.0, pytest.approx(1 / 3))
    assert trainer.trained == 2  # what has come to its end is not trained again


def test_training_is_ended_where_it_is_good_enough(checkpoint: Path, standalone: Path, tmp_path: Path) -> None:
    class Endless(Trainer):
        def further_command(self, architecture: Architecture, folder: Path, *arguments: object) -> list[str]:
            (folder / "20.kept").write_text("8.5")
            return [sys.executable, "-S", "-c", "import time; time.sleep(60)"]

    begin = time.monotonic()
    result = closed({"one": Endless()}, checkpoint, tmp_path / "out", standalone, architectures=1)
    assert result.rows[0]["updates"] == 20 and time.monotonic() - begin < 30
    assert not list((tmp_path / "out").glob("further/*/*/ended.json"))


def test_what_was_kept_last_stays_while_it_may_be_copied(checkpoint: Path, standalone: Path, tmp_path: Path) -> None:
    class Copying(Trainer):
        def further_command(self, architecture: Architecture, folder: Path, *arguments: object) -> list[str]:
            code = (
                "import pathlib, sys, time\n"
                f"own = pathlib.Path({str(folder)!r})\n"
                "for n in (20, 40):\n"
                "    (own / f'{n}.kept').write_text('8.9')\n"
                "    while not (own / 'curve.jsonl').exists(): time.sleep(0.01)\n"
                "    time.sleep(0.1)\n"
                "    assert (own / f'{n}.kept').exists(), 'Error: cannot be copied'\n"
            )
            return python(code)

    result = closed({"one": Copying()}, checkpoint, tmp_path / "out", standalone, architectures=1)
    assert list(result.details["curves"]["one"]["1"]) == ["0", "20", "40"]
    assert not list((tmp_path / "out").glob("further/*/*/*.kept"))


def test_qualities_that_are_better_the_larger(checkpoint: Path, standalone: Path, tmp_path: Path) -> None:
    trainer = Trainer()
    trainer.maximised = ("loss",)
    result = closed({"one": trainer}, checkpoint, tmp_path / "out", standalone)
    assert [row["updates"] for row in result.rows] == [0, 0, None] and result.rows[2]["best"] == 7.0


def test_a_folder_has_one_schedule_and_data(checkpoint: Path, standalone: Path, tmp_path: Path) -> None:
    arguments = checkpoint, tmp_path / "out", standalone
    closed({"one": Trainer()}, *arguments, architectures=1)
    for other, value in (
        ({"every": 30}, "every"),
        ({"most_updates": 80}, "most_updates"),
        ({"train": {"lr": "1"}}, "lr"),
    ):
        with pytest.raises(ConfigError, match=value):
            closed({"one": Trainer()}, *arguments, **other)
    with pytest.raises(ConfigError, match="elsewhere"):
        closed({"one": Trainer(data="elsewhere")}, *arguments)
    assert closed({"one": Trainer(data="elsewhere")}, *arguments, architectures=1).rows[0]["updates"] == 60
