"""``nas-ext search`` with other inputs than before, and errors of the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from nas_core.errors import NasExtError
from nas_core.space import Architecture, get_space
from tests.cli.searching import Search, latency_model
from tests.toys import ToySupernet


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


def test_errors_of_the_host_end_the_search(
    run: Search, supernet: ToySupernet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def evaluate(architecture: Architecture) -> dict[str, float]:
        raise NasExtError("no split 'valid'; give another")

    monkeypatch.setattr(supernet, "evaluate", evaluate)
    assert run() == 2
    assert "no split 'valid'" in capsys.readouterr().err
