"""The example experiments of NNI, small: ``nnictl``, its manager, our tuners by name and our trial, all for real."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from nas_core.files.journal import read_jsonl
from nas_core.report import write_report
from nas_core.report.run import read_run
from nas_core.space import Architecture, get_space
from nni_ext.hpo.search_space import format_space
from tests.warm import python

EXAMPLES = Path(__file__).parents[2] / "examples" / "nni"
BIN = Path(sys.executable).parent
TRIALS = 4
SMALL: Mapping[str, dict[str, Any]] = {
    "evolution": {"iterations": 3, "population": 5, "parents": 2},
    "ranknas": {"samples": 4, "rounds": 2, "per_round": 2},
}

pytestmark = [
    pytest.mark.nni,
    pytest.mark.slow,
    pytest.mark.skipif(not (BIN / "nnictl").exists(), reason="NNI is not installed: there is no nnictl"),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """NNI's lists of algorithms and experiments in folders of the test, our tuners registered."""
    home = tmp_path_factory.mktemp("nni")
    variables = {**python()[1], "HOME": str(home), "NNI_CONFIG_DIR": str(home)}
    done = subprocess.run(["bash", "-c", "nas-ext nni register"], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "registered: nas-ext" in done.stdout
    yield variables
    subprocess.run(["bash", "-c", "nnictl stop --all"], env=variables, capture_output=True)


@pytest.fixture
def experiment(
    trained: Callable[[str], Path], corpus: Path, space_file: Path, tmp_path: Path
) -> Callable[[str], tuple[Path, int]]:
    """``experiment(example)``: its YAML for the test's supernet with a few trials, and a free port."""

    def make(example: str) -> tuple[Path, int]:
        content = yaml.safe_load((EXAMPLES / f"{example}.yml").read_text(encoding="utf-8"))
        (tmp_path / "space.json").write_text(format_space(get_space(str(space_file))), encoding="utf-8")
        program = content["trialCommand"].split(" --checkpoint ")[0]
        arguments = content["tuner"]["classArgs"]
        content.update(
            searchSpaceFile="space.json",
            trialCommand=f"{program} --checkpoint {trained('neuron')} --data {corpus} --valid-samples 20",
            maxTrialNumber=TRIALS,
            experimentWorkingDirectory=str(tmp_path / "experiments"),
        )
        arguments.update({**SMALL[example], "space": str(space_file), "max_params_m": 1.0})
        path = tmp_path / f"{example}.yml"
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return path, free.getsockname()[1]

    return make


def nnictl(environment: Mapping[str, str], *arguments: object, may_be_late: bool = False) -> bool:
    """Whether it succeeded; a tuner that NNI gives up after ten seconds of a busy machine may be no failure."""
    done = subprocess.run(
        [python()[0], "-m", "nni_ext.nnictl", *map(str, arguments)],
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=200,
    )
    late = may_be_late and done.returncode == 1 and "did not connect" in done.stderr
    assert late or done.returncode == 0, done.stdout + done.stderr
    return not late


def begin(environment: Mapping[str, str], tmp_path: Path, lines: int, *arguments: object) -> Path:
    """``nnictl create`` or ``resume``, up to that number of results; again if NNI's manager gave the tuner up. Returns
    the experiment's folder."""
    for _ in range(4):
        if nnictl(environment, *arguments, may_be_late=True):
            folder = (tmp_path / "experiments" / "_latest").resolve()
            wait_for(folder / "nas-ext" / "journal.jsonl", lines)
            return folder
    raise AssertionError("NNI gave the tuner up four times")


def in_data_base(environment: Mapping[str, str], name: str, file: Path) -> list[Any]:
    """The trials that NNI exports, all of them: a tuner knows a result before NNI has written it down."""
    trials: list[Any] = []
    for _ in range(60):
        nnictl(environment, "experiment", "export", name, "--filename", file, "--type", "json", "--intermediate")
        trials = json.loads(file.read_text())
        if len(trials) >= TRIALS:
            break
        time.sleep(1.0)
    return trials


def wait_for(path: Path, lines: int, seconds: float = 200) -> list[dict[str, Any]]:
    """The records of a journal once there are that many."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if path.exists() and len(result := read_jsonl(path)) >= lines:
            return result
        time.sleep(0.5)
    raise AssertionError(f"{path} has not got {lines} lines within {seconds} s")


def test_the_examples_search_space_is_what_the_command_writes() -> None:
    written = (EXAMPLES / "hat_small.json").read_text(encoding="utf-8")
    assert written == format_space(get_space("hat_small"))
    for example in SMALL:
        content = yaml.safe_load((EXAMPLES / f"{example}.yml").read_text(encoding="utf-8"))
        assert content["searchSpaceFile"] == "hat_small.json"
        assert content["tuner"]["classArgs"]["space"] == "hat_small"


def test_an_experiment_that_is_killed_and_resumed(
    experiment: Callable[[str], tuple[Path, int]], environment: dict[str, str], tmp_path: Path
) -> None:
    """SIGKILL to manager, dispatcher and trials; afterwards nothing is evaluated twice, up to the end."""
    path, port = experiment("ranknas")
    folder = begin(environment, tmp_path, 2, "create", "--config", path, "--port", port)
    journal = folder / "nas-ext" / "journal.jsonl"
    first = read_jsonl(journal)
    kill_experiment(folder)
    begin(environment, tmp_path, len(first) + 1, "resume", folder.name, "--port", port)
    records = wait_for(journal, TRIALS)
    trials = in_data_base(environment, folder.name, tmp_path / "trials.json")
    nnictl(environment, "stop", folder.name)
    assert records[: len(first)] == first
    assert len({entry["key"] for entry in records}) == len(records)
    assert len(trials) >= TRIALS
    space = get_space(str(path.parent / yaml.safe_load(path.read_text())["tuner"]["classArgs"]["space"]))
    assert all(Architecture(entry["genes"]) in space for entry in records)
    for entry in records:
        assert set(entry["metrics"]) >= {"default", "loss", "nll_loss", "params_m", "flops_g"}
        assert entry["metrics"]["params_m"] <= 1.0
    finished = [trial for trial in trials if trial["value"]]
    assert len(finished) >= TRIALS - 1
    for trial in finished:
        value = trial["value"]
        assert json.loads(value)["default"] > 0 if isinstance(value, str) else value["default"] > 0
        assert trial["intermediate"]
    assert read_run(folder / "nas-ext").finalists
    assert write_report(folder / "nas-ext").stat().st_size > 10_000


def kill_experiment(folder: Path) -> None:
    """All processes that name the experiment, or work below its folder, until none is left: NNI resumes no experiment
    whose manager is still there."""
    killed = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace")
            variables = (process / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if folder.name in command or str(folder) in variables:
            os.kill(int(process.name), signal.SIGKILL)
            killed.append(process)
    assert len(killed) >= 2
    end = time.monotonic() + 60
    while any(process.exists() for process in killed):
        assert time.monotonic() < end, "killed processes are still there"
        time.sleep(0.1)
