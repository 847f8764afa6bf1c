"""``nas-ext search`` with wrong input, other inputs and errors of the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from nas_core.cli import main
from nas_core.errors import NasExtError
from nas_core.space import Architecture, get_space
from tests.cli.searching import Search, latency_model
from tests.toys import ToySupernet


@pytest.mark.parametrize(
    ("arguments", "limits", "said"),
    [
        (["--limit", "latency_ms=5"], False, "limit latency_ms needs a latency model"),
        (["--limit", "latency_share=0.5"], False, "limit latency_share needs a latency model"),
        (["--limit", "latency_share=0"], True, "limit latency_share is 0.0; expected a number above 0 to 1"),
        (["--limit", "latency_share=50"], True, "limit latency_share is 50.0; expected a number above 0 to 1"),
        (["--limit", "latency_ms=0.01"], True, "acceptance rate"),
        (["--limit", "latency_ms=-1"], True, "above 0"),
        (["--limit", "params_m=0.00001"], False, "lowest values reached: params_m"),
        (["--set", "population=100"], False, "expected 16"),
        (["--set", "iterations=0"], False, "iterations is 0; expected a whole number from 1 on"),
        (["--set", "mutation_prob=2"], False, "mutation_prob is 2.0"),
        (["--strategy", "ranknas", "--set", "samples=1"], False, "samples is 1"),
        (["--strategy", "evolutoin"], False, "Did you mean 'evolution'?"),
        (["--strategy", "ranknas", "--set", "ranker=nnformer"], False, "Did you mean 'nn-former'?"),
        (["--set", "ranker=regression"], False, "unknown option of strategy evolution 'ranker'"),
        (["--set", "prune_by=metric"], False, "unknown option of strategy evolution 'prune_by'"),
        (["--strategy", "random", "--set", "parents=3"], False, "unknown option of strategy random 'parents'"),
        (["--strategy", "ranknas", "--set", "trees.depth=3"], False, "unknown setting of trees 'depth'"),
        (["--strategy", "ranknas", "--set", "trees.members=many"], False, "members is 'many'; expected a whole number"),
        (["--strategy", "ranknas", "--set", "prune_by=loss"], False, "expected one of metric-and-limits, metric"),
        (
            ["--strategy", "multi-objective", "--set", "parents=8"],
            False,
            "unknown option of strategy multi-objective 'parents'",
        ),
        (["--latency-model", "nowhere.json"], False, "nowhere.json"),
        (["--limit", "memory_mb=0.0001"], False, "lowest values reached: memory_mb"),
        (["--limit", "cache_mb=1", "--workload", "beams=4"], False, "Did you mean 'beam'?"),
        (["--limit", "cache_mb=1", "--workload", "beam"], False, "workload is 'beam'; expected NAME=VALUE"),
        (["--limit", "cache_mb=1", "--workload", "beam=0"], False, "beam is 0, expected at least 1"),
        (["--workload", "beam=4"], False, "workload says at what memory_mb and cache_mb are counted"),
        (["--strategy", "milp", "--set", "gap=2"], False, "gap is 2.0"),
    ],
)
def test_wrong_input_is_one_line(
    run: Search, arguments: list[str], limits: bool, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(*arguments, limits=limits) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert error.count("\n") == 0
    assert not (tmp_path / "run").exists()


def test_other_inputs_do_not_continue_a_run(run: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--no-measure") == 0
    assert run("--no-measure", "--seed", "1") == 2
    assert "seed = 0, now it is 1" in capsys.readouterr().err
    (tmp_path / "checkpoint.pt").write_bytes(b"other weights")
    assert run("--no-measure") == 2
    assert "checkpoint_sha256" in capsys.readouterr().err


def test_a_model_of_another_space_is_refused(run: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = latency_model(tmp_path / "other.json", get_space("hat_small"))
    assert run("--latency-model", str(other), "--limit", "latency_ms=5", limits=False) == 2
    assert "hat_small" in capsys.readouterr().err


def test_a_missing_checkpoint_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "--checkpoint", str(tmp_path / "no.pt"), "--out", str(tmp_path / "run")]) == 2
    assert "no.pt" in capsys.readouterr().err


def test_errors_of_the_host_end_the_search(
    run: Search, supernet: ToySupernet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def evaluate(architecture: Architecture) -> dict[str, float]:
        raise NasExtError("no split 'valid'; give another")

    monkeypatch.setattr(supernet, "evaluate", evaluate)
    assert run() == 2
    assert "no split 'valid'" in capsys.readouterr().err
