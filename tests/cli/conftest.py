"""A made-up supernet, and `nas-ext search` on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nas_core.cli import main
from tests.cli.searching import SMALL, SPACE, Search, latency_model, score
from tests.toys import ToySupernet


@pytest.fixture
def supernet(monkeypatch: pytest.MonkeyPatch) -> ToySupernet:
    toy = ToySupernet(SPACE, score, {"kind": "translation", "source_vocab": 20, "target_vocab": 24})

    def open_supernet(path: Path, **options: Any) -> ToySupernet:
        assert set(options) == {"data", "valid_subset", "valid_samples", "device"}
        return toy

    monkeypatch.setattr("nas_core.supernet.host.open_supernet", open_supernet)
    return toy


@pytest.fixture
def run(tmp_path: Path, supernet: ToySupernet) -> Search:
    (tmp_path / "checkpoint.pt").write_bytes(b"weights")
    model = latency_model(tmp_path / "latency.json")

    def call(*arguments: str, limits: bool = True, out: str = "run") -> int:
        options = (
            ["--latency-model", str(model), "--limit", "latency_ms=2.6", "--limit", "latency_ms=2.2"] if limits else []
        )
        files = ["--checkpoint", str(tmp_path / "checkpoint.pt"), "--out", str(tmp_path / out)]
        if not {"--strategy", "--evaluations"} & {*arguments}:
            arguments = ("--strategy", "evolution", *arguments)
        by = arguments[arguments.index("--strategy") + 1] if "--strategy" in arguments else ""
        small = [] if "--evaluations" in arguments else SMALL.get(by, [])
        return main(["search", *files, *options, *small, "--finalists", "4", *arguments])

    return call
