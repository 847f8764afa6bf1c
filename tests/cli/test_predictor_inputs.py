"""``nas-ext predictor`` where more than graphs and targets is learned from: proxies, and short trainings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nas_core.cli import main
from nas_core.predictor import load_accuracy_model
from tests.predictor.graphs import random_graphs, sizes_of_operations

Records = list[dict[str, Any]]
TINY = ["--set", "dim=16", "--set", "depth=1", "--epochs", "3"]


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    code = main(["predictor", *map(str, arguments)])
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


def test_short_trainings_beside_long_ones(
    records: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for index, record in enumerate(records):
        record["epochs"] = 100 if index < 16 else 4
    path, model = write(tmp_path / "both.jsonl", records), tmp_path / "p.safetensors"
    train = ["train", "--data", path, "--out", model, "--fidelity", "epochs", "--holdout", 0.25, *TINY]
    code, out, err = run(capsys, *train)
    assert (code, err) == (0, "") and "held out: 4 graphs" in out
    assert "learned from records with epochs 4 (32), 100 (12)" in out
    assert run(capsys, "predict", "--model", model, "--data", path)[0] == 0
    code, out, err = run(capsys, "bench", "--model", model, "--batch", 8, "--repeats", 1)
    assert (code, err) == (0, "") and out.splitlines()[-1].split()[0] == "8"
    assert not list(tmp_path.glob("*.unfinished*"))
    code, _, err = run(capsys, *train, "--force", "--curve", tmp_path / "c.json")
    assert code == 2 and "each fidelity is learned by a model with a curve of its own; leave --curve out" in err
    records[0]["epochs"] = 101
    write(path, records)
    code, _, err = run(capsys, *train, "--force")
    assert code == 2 and len(err.splitlines()) == 1
    assert "the highest fidelity, which is predicted, 101 has 1 graph(s); expected 5 or more" in err
