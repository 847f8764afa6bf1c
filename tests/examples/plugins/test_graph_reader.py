"""A third party's graph reader: plugged in by its entry point it meets the contract, and predictors read with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.cli import main
from nas_core.predictor import READERS
from tests.contracts.graph_reader import Arguments, GraphReaderContract
from tests.toys import plug_in, show_other_processes


@pytest.fixture(autouse=True)
def plugged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(tmp_path / "site", monkeypatch, "nas_ext.graph_readers", "chains", "examples.plugins.graph_reader:CHAINS")
    show_other_processes(tmp_path / "site", monkeypatch)


class TestChains(GraphReaderContract):
    name = "chains"

    def inputs(self) -> Sequence[Arguments]:
        return [(["conv"],), (["conv", "pool", "dense"],), (["dense", "pool", "conv"],)]

    def wrong(self) -> Mapping[str, Arguments]:
        return {"such as ['conv', 'dense']": ([],), "Did you mean 'conv'": (["covn"],)}


def test_a_predictor_is_trained_and_used_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    chains = [[str(name) for name in rng.choice(["conv", "pool", "dense"], rng.integers(2, 8))] for _ in range(60)]
    records: list[dict[str, Any]] = [{"architecture": names, "target": names.count("conv") / 7} for names in chains]
    data, model = tmp_path / "chains.jsonl", tmp_path / "chains.safetensors"
    data.write_text("".join(json.dumps(record) + "\n" for record in records))
    small = ["--set", "processes=0", "--set", "trees=1"]
    train = ["lab", "predictor", "train", "--data", str(data), "--out", str(model), "--reader", "chains", *small]
    assert main(train) == 0, capsys.readouterr().err
    assert main(["lab", "predictor", "predict", "--model", str(model), "--data", str(data)]) == 0, (
        capsys.readouterr().err
    )
    assert len(capsys.readouterr().out.splitlines()) > len(records)
    assert READERS.names()[-1] == "chains"
