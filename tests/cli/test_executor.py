"""``--executor submitit`` of ``nas-ext search`` and ``nas-ext latency collect``: real jobs on this machine.

Most of the time goes into starting processes that import torch.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from nas_core.cli import main
from nas_core.latency.by_genes.dataset import LatencyDataset
from nas_core.search.registry import STRATEGIES
from tests.search.toy_host import make_visible

SMALL = ["--strategy", "evolution", "--set", "iterations=2", "--set", "population=12", "--set", "parents=4"]
SHORT = [
    "--workload=vocab=40",
    "--workload=source_length=4",
    "--workload=target_length=3",
    "--workload=beam=2",
    "--repeats=2",
    "--warmup=1",
]


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_visible(tmp_path, monkeypatch)
    (tmp_path / "net.toy").write_text(json.dumps({"fail": True}))
    return tmp_path / "net.toy"


def search(checkpoint: Path, out: Path, *options: str) -> int:
    small = [] if "--strategy" in options else SMALL
    return main(["search", "--checkpoint", str(checkpoint), "--out", str(out), *small, "--no-measure", *options])


@pytest.mark.slow
def test_a_search_in_jobs_leaves_the_same_files(checkpoint: Path, tmp_path: Path) -> None:
    pytest.importorskip("submitit", reason="needs submitit")
    limits = ["--limit", "params_m=20"]
    assert search(checkpoint, tmp_path / "here", *limits) == 0
    opened = tmp_path / "opened.txt"
    opened.unlink()
    assert search(checkpoint, tmp_path / "jobs", *limits, "--executor", "submitit", "--job", "jobs=2") == 0
    for name in ("config.yaml", "journal.jsonl", "state.json", "pareto.csv", "finalists.json"):
        assert (tmp_path / "jobs" / name).read_bytes() == (tmp_path / "here" / name).read_bytes(), name
    assert len(opened.read_text().splitlines()) == 1 + 2 * 2  # here for the space, then two jobs in each generation


@pytest.mark.slow
def test_measurements_in_jobs_are_merged_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("submitit", reason="needs submitit")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    command = ["latency", "collect", "--space", "hat_small", *SHORT]
    jobs = ["--executor", "submitit", "--job", "per_job=3"]
    path = tmp_path / "jobs.jsonl"
    assert main([*command, "--out", str(path), "--samples", "2", *jobs]) == 0
    assert main([*command, "--out", str(path), "--samples", "6", *jobs]) == 0
    assert main([*command, "--out", str(path), "--samples", "7"]) == 0  # and here, as it is the same machine
    assert main([*command, "--out", str(tmp_path / "here.jsonl"), "--samples", "7"]) == 0
    jobs_, here = (LatencyDataset.read(file) for file in (path, tmp_path / "here.jsonl"))
    assert jobs_.architectures() == here.architectures()
    assert (jobs_.machine, jobs_.settings) == (here.machine, here.settings)
    assert [record["index"] for record in jobs_.records] == list(range(7))
    assert all(record["latency_ms"] > 0 for record in jobs_.records)
    assert not (tmp_path / "jobs.jsonl.jobs").exists()
    assert main([*command, "--out", str(path), "--samples", "8", *jobs, "--threads", "2"]) == 2
    assert "timing.threads = 1, now it is 2" in capsys.readouterr().err
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0].replace('"cores": ', '"cores": 9'), *lines[1:]]) + "\n")
    assert main([*command, "--out", str(path), "--samples", "8", *jobs]) == 2
    assert "was created with machine cores" in capsys.readouterr().err
    assert len(path.read_text().splitlines()) == 8


@pytest.mark.parametrize(
    ("strategy", "executor"), [*((name, "local") for name in STRATEGIES.names()), ("evolution", "submitit")]
)
def test_an_infeasible_limit_ends_within_seconds_with_the_facts(
    checkpoint: Path, tmp_path: Path, strategy: str, executor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Limits on paper are computed for one architecture after the other: the slow case."""
    if executor == "submitit":
        pytest.importorskip("submitit", reason="needs submitit")
    start = time.monotonic()
    options = ["--limit", "params_m=0.01", "--strategy", strategy, "--executor", executor]
    assert search(checkpoint, tmp_path / "run", *options) == 2
    assert time.monotonic() - start < 20
    *_, error = capsys.readouterr().err.splitlines()  # after lines of progress on a busy machine
    for fact in ("params_m<=0.01", "acceptance rate 0.00%", "lowest values reached: params_m", "closest candidate"):
        assert fact in error, fact
    assert not (tmp_path / "run").exists()
