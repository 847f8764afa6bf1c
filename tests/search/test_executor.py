"""Evaluations in batches and in jobs: the same journal as one after the other, whatever happens to the jobs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nas_core.errors import ConfigError, NasExtError
from nas_core.jobs import Failure, JobsConfig
from nas_core.search import (
    EvolutionConfig,
    HATEvolution,
    MultiObjectiveConfig,
    MultiObjectiveEvolution,
    RandomConfig,
    RandomSearch,
    RankNAS,
    RankNASConfig,
    Strategy,
    search,
)
from nas_core.search.executor import SubmititExecutor
from nas_core.space import Architecture
from tests.contracts.strategy import SPACE, limit
from tests.search.toy_host import ROOT, ToySupernet, make_visible

FILES = ("config.yaml", "journal.jsonl", "state.json", "pareto.csv", "finalists.json")
SMALL = EvolutionConfig(iterations=3, population=12, parents=4, mutations=5, crossovers=3)
RANKNAS = RankNASConfig(samples=20, rankings=2, per_ranking=6, candidates=50, generations=2)
STRATEGIES: dict[str, Callable[[float], Strategy]] = {
    "evolution": lambda value: HATEvolution(SPACE, [limit(value)], SMALL, seed=1),
    "random": lambda value: RandomSearch(SPACE, [limit(value)], RandomConfig(evaluations=40, batch=15), seed=1),
    "ranknas": lambda value: RankNAS(SPACE, [limit(value)], RANKNAS, seed=1),
    "multi-objective": lambda value: MultiObjectiveEvolution(
        SPACE, [limit(value)], MultiObjectiveConfig(iterations=3, population=8, mutations=5, crossovers=5), seed=1
    ),
}


def strategies(name: str = "evolution") -> dict[str, Strategy]:
    return {f"latency_ms<={value:g}": STRATEGIES[name](value) for value in (3000.0, 2500.0)}


def evaluate(architecture: Architecture) -> dict[str, float]:
    return ToySupernet.evaluate(failing, architecture)


failing = ToySupernet.__new__(ToySupernet)
failing.settings = {"fail": True}


def many(architectures: Sequence[Architecture]) -> Iterator[Mapping[str, Any] | Failure]:
    for architecture in architectures:
        try:
            yield evaluate(architecture)
        except RuntimeError as error:
            yield Failure.of(error)


def same_files(one: Path, other: Path) -> None:
    for name in FILES:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("together", [5, 1000])
def test_batches_give_the_same_files(tmp_path: Path, name: str, together: int) -> None:
    search(strategies(name), evaluate, tmp_path / "one", progress=False)
    sizes = []

    def counted(architectures: Sequence[Architecture]) -> Iterator[Mapping[str, Any] | Failure]:
        sizes.append(len(architectures))
        return many(architectures)

    options: dict[str, Any] = {"evaluate_many": counted, "together": together, "progress": False}
    result = search(strategies(name), None, tmp_path / "many", **options)
    same_files(tmp_path / "one", tmp_path / "many")
    assert "out of memory" in (tmp_path / "one" / "journal.jsonl").read_text()
    assert sum(sizes) == result.evaluations
    assert 1 < max(sizes) <= together


@pytest.mark.parametrize("together", [1, 7, 1000])
def test_a_journal_cut_off_anywhere_is_completed_in_batches(tmp_path: Path, together: int) -> None:
    search(strategies(), evaluate, tmp_path / "whole", progress=False)
    content = (tmp_path / "whole" / "journal.jsonl").read_bytes()
    for part in range(0, len(content), len(content) // 5):
        folder = tmp_path / str(part)
        folder.mkdir()
        (folder / "config.yaml").write_bytes((tmp_path / "whole" / "config.yaml").read_bytes())
        (folder / "journal.jsonl").write_bytes(content[:part])
        search(strategies(), None, folder, evaluate_many=many, together=together, progress=False)
        same_files(folder, tmp_path / "whole")


def test_one_kind_of_evaluation_and_at_least_one_together(tmp_path: Path) -> None:
    for given in ({"evaluate": None}, {"evaluate": evaluate, "evaluate_many": many}):
        with pytest.raises(ConfigError, match="only one of them"):
            search(strategies(), out_dir=tmp_path / "run", **given)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="together is 0"):
        search(strategies(), None, tmp_path / "run", evaluate_many=many, together=0)
    assert not (tmp_path / "run").exists()


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    pytest.importorskip("submitit", reason="needs submitit")
    make_visible(tmp_path, monkeypatch)

    def make(**settings: Any) -> Path:
        (tmp_path / "net.toy").write_text(json.dumps(settings))
        return tmp_path / "net.toy"

    return make


def one_limit(iterations: int) -> dict[str, Strategy]:
    config = replace(SMALL, iterations=iterations)
    return {"latency_ms<=3000": HATEvolution(SPACE, [limit(3000.0)], config, seed=1)}


def in_jobs(path: Path, folder: Path, iterations: int = 1, **jobs: Any) -> None:
    config = JobsConfig(**{"jobs": 2, "per_job": 20, **jobs})
    evaluations = SubmititExecutor(path, {"device": "cpu"}, config, folder / "jobs")
    options: dict[str, Any] = {"evaluate_many": evaluations, "together": evaluations.together, "progress": False}
    search(one_limit(iterations), None, folder, **options)


def test_an_architecture_that_kills_its_jobs_is_recorded_as_failed(
    tmp_path: Path, checkpoint: Callable[..., Path]
) -> None:
    victim = one_limit(1)["latency_ms<=3000"].ask(4)[-1]
    in_jobs(checkpoint(die=victim.key), tmp_path / "jobs", jobs=1)
    records = [json.loads(line) for line in (tmp_path / "jobs" / "journal.jsonl").read_text().splitlines()]
    assert len(records) == SMALL.population
    (failed,) = [record for record in records if "error" in record]
    assert failed["key"] == victim.key
    assert "two jobs were lost over it" in failed["error"]


PROGRAM = """
import sys
from pathlib import Path
from tests.search.test_executor import in_jobs
in_jobs(Path(sys.argv[1]), Path(sys.argv[2]), 2)
"""


@pytest.mark.slow
def test_killed_while_jobs_run_it_continues_identically(tmp_path: Path, checkpoint: Callable[..., Path]) -> None:
    path, folder = checkpoint(fail=True, wait_s=0.05), tmp_path / "jobs"
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(path), str(folder)], cwd=ROOT)
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if (folder / "journal.jsonl").exists() and len((tmp_path / "opened.txt").read_text().splitlines()) > 2:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL
    in_jobs(path, folder, 2)
    search(one_limit(2), evaluate, tmp_path / "one", progress=False)
    same_files(folder, tmp_path / "one")
    pids = {int(line.split()[0]) for line in (tmp_path / "opened.txt").read_text().splitlines()}
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_a_supernet_that_does_not_open_is_one_line(tmp_path: Path, checkpoint: Callable[..., Path]) -> None:
    checkpoint()
    with pytest.raises(NasExtError, match=r"no file .*absent\.toy"):
        in_jobs(tmp_path / "absent.toy", tmp_path / "jobs")
    assert not (tmp_path / "jobs" / "journal.jsonl").exists()
    assert (tmp_path / "jobs" / "config.yaml").exists()
