"""``nas-ext search`` on a supernet of a made-up host: output files, measured finalists, interruptions."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from nas_core.latency import load_latency_model
from nas_core.report import write_report
from nas_core.space import Architecture, get_space
from tests.cli.searching import SPACE, Search, latency_model
from tests.toys import ToySupernet


def test_two_limits_end_in_measured_finalists(
    run: Search, supernet: ToySupernet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    output = capsys.readouterr().out
    finalists = json.loads((tmp_path / "run" / "finalists.json").read_text())["finalists"]
    limits = {"latency_ms<=2.6": 2.6, "latency_ms<=2.2": 2.2}
    assert {name for finalist in finalists for name in (*finalist["best_of"], *finalist["over_limit"])} == set(limits)
    for finalist in finalists:  # a busy machine may measure all of them above a limit
        assert all(finalist["measured"]["latency_ms"] <= limits[name] for name in finalist["best_of"])
        assert all(finalist["measured"]["latency_ms"] > limits[name] for name in finalist["over_limit"])
        assert all(finalist["metrics"]["latency_ms"] <= limits[name] for name in finalist["best_of"])
    for finalist in finalists:
        assert finalist["key"] in output
        assert finalist["measured"]["latency_ms"] > 0
        assert finalist["measured"]["std_ms"] >= 0
        assert finalist["measured"]["same_machine"]
        assert {"loss", "nll_loss", "latency_ms", "params_m", "flops_g"} <= set(finalist["metrics"])
        assert Architecture.load(tmp_path / "run" / finalist["file"]) in SPACE
    lines = [line for line in output.splitlines() if line.startswith(str(tmp_path / "run" / "finalists"))]
    assert {line.split()[0] for line in lines} == {str(tmp_path / "run" / finalist["file"]) for finalist in finalists}
    assert len({line.partition("  ")[2] for line in lines}) == len(lines) > 1, "the genes of each differ"
    assert "predicted (ms)" in output
    assert "measured (ms)" in output
    assert f"{len(supernet.evaluated)} architectures evaluated (0 of them before)" in output
    assert len(set(supernet.evaluated)) == len(supernet.evaluated)


def test_a_limit_as_a_percentage_of_the_largest_network(
    run: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = latency_model(tmp_path / "own.json")
    full = float(load_latency_model(model, "genes", SPACE).predict([SPACE.largest()])[0])
    given = ["--limit", "latency_ms=2.6", "--limit", "latency_ms=95%", "--limit", "latency_ms=100%"]
    assert run("--latency-model", str(model), *given, "--no-measure", limits=False) == 0
    errors = capsys.readouterr().err
    assert f"limit 95% is {0.95 * full:.4g} ms; the largest network takes {full:.4g} ms" in errors
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["settings"]
    first, *limits = (float(name.removeprefix("latency_ms<=")) for name in config["searches"])
    assert first == 2.6 and limits == pytest.approx([0.95 * full, full], abs=1e-4)
    assert limits[1] >= full  # the largest network is within all of its own latency


def test_a_prediction_that_is_too_low_is_no_best_of_its_limit(
    run: Search, supernet: ToySupernet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """What is measured is 15 % above what is predicted: the best of a limit is another one, and the table says so."""
    model, calls = load_latency_model(latency_model(tmp_path / "other.json"), "genes", SPACE), []

    def remeasure(architectures: list[Architecture], *_: Any) -> list[dict[str, Any]]:
        calls.extend(architectures)
        return [{"latency_ms": float(ms) * 1.15, "same_machine": True} for ms in model.predict(architectures)]

    monkeypatch.setattr("nas_core.search.remeasure.remeasure", remeasure)
    assert run() == 0
    output = capsys.readouterr().out
    finalists = json.loads((tmp_path / "run" / "finalists.json").read_text())["finalists"]
    for limit in (2.6, 2.2):
        above = [one for one in finalists if f"latency_ms<={limit}" in one["over_limit"]]
        (best,) = (one for one in finalists if f"latency_ms<={limit}" in one["best_of"])
        assert above and all(one["metrics"]["latency_ms"] <= limit < one["measured"]["latency_ms"] for one in above)
        assert best["measured"]["latency_ms"] <= limit
        assert best["metrics"]["loss"] >= max(one["metrics"]["loss"] for one in above)
        first = above[0]["key"]
        assert f"≤ {limit} ms: the best network predicted within the limit, {first}, was measured with" in output
    assert "limit exceeded" in output.splitlines()[0]
    measured = len(calls)
    assert run() == 0 and len(calls) == measured  # nothing is measured twice
    assert json.loads((tmp_path / "run" / "finalists.json").read_text())["finalists"] == finalists
    assert "the best network predicted within the limit" in write_report(tmp_path / "run").read_text(encoding="utf-8")
    assert "over_limit" in (tmp_path / "run" / "finalists.csv").read_text().splitlines()[0]

    slow = {"latency_ms": 9.0, "same_machine": True}
    monkeypatch.setattr("nas_core.search.remeasure.remeasure", lambda some, *_: [slow for _ in some])
    assert run(out="none") == 0
    assert re.search(r"≤ 2.2 ms: none of the \d measured networks is within it", capsys.readouterr().out)


def test_ctrl_c_says_that_the_same_command_continues(
    run: Search, supernet: ToySupernet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    real, left = supernet.evaluate, itertools.count(-7)

    def evaluate(architecture: Architecture) -> dict[str, float]:
        if next(left) == 0:
            raise KeyboardInterrupt
        return real(architecture)

    monkeypatch.setattr(supernet, "evaluate", evaluate)
    assert run("--no-measure") == 130
    line = capsys.readouterr().err.splitlines()[-1]
    assert line == f"interrupted: 7 evaluations are kept in {tmp_path / 'run'}; the same command continues"
    assert run("--no-measure") == 0
    assert "(7 of them before)" in capsys.readouterr().out


def test_other_inputs_do_not_continue_a_run(run: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--no-measure") == 0
    assert run("--no-measure", "--seed", "1") == 2
    assert "seed = 0, now it is 1" in capsys.readouterr().err
    (tmp_path / "checkpoint.pt").write_bytes(b"other weights")
    assert run("--no-measure") == 2
    assert "checkpoint_sha256" in capsys.readouterr().err
    other = latency_model(tmp_path / "other.json", get_space("hat_small"))
    assert run("--latency-model", str(other), "--limit", "latency_ms=5", limits=False, out="new") == 2
    assert "hat_small" in capsys.readouterr().err
