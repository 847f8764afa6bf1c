"""``nas-ext lab predictor`` where zero-cost proxies are learned from beside graphs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nas_core.cli import main
from nas_core.predictor import load_accuracy_model
from tests.predictor.graphs import random_graphs, sizes_of_operations

Records = list[dict[str, Any]]


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    code = main(["lab", "predictor", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def write(path: Path, records: Records) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def records() -> Records:
    graphs = random_graphs((5, 6, 7) * 16, seed=1)
    values = 0.5 + sizes_of_operations(graphs)
    return [{"graph": g.to_dict(), "target": float(v)} for g, v in zip(graphs, values, strict=True)]


def test_proxies_are_read_beside_graphs(
    records: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, scored, data = tmp_path / "p.safetensors", tmp_path / "scored.jsonl", write(tmp_path / "d.jsonl", records)
    write(scored, [{**record, "proxies": {"nwot": i, "params": 1e6}} for i, record in enumerate(records)])
    small = ("--model", "boosted-trees", "--set", "trees=1", "--out", model)
    code, _, err = run(capsys, "train", "--data", data, *small, "--proxy", "nwot")
    assert (
        code == 2 and "record 1: no score of proxy 'nwot', which the predictor reads; it has no field 'proxies'" in err
    )
    code, _, err = run(capsys, "train", "--data", scored, *small, "--proxy", "snip")
    assert code == 2 and "it has proxies nwot, params" in err
    assert run(capsys, "train", "--data", scored, *small, "--proxy", "nwot")[0] == 0
    assert load_accuracy_model(model).proxies == ("nwot",)
    assert run(capsys, "predict", "--model", model, "--data", scored)[0] == 0
    code, _, err = run(capsys, "predict", "--model", model, "--data", data)
    assert code == 2 and "no score of proxy 'nwot'" in err
    code, out, err = run(capsys, "bench", "--model", model, "--batch", 8, "--repeats", 1)
    assert (code, err) == (0, "") and out.splitlines()[-1].split()[0] == "8"
