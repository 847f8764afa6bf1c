"""Graphs and targets from JSON Lines, predictions into a file."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.errors import DataError
from nas_core.graph import Graph
from nas_core.graph.nasbench101 import nasbench101_graph
from nas_core.graph.nasbench201 import nasbench201_graph
from nas_core.models.translation.kind import translation_graph
from nas_core.predictor import reader_for
from nas_core.predictor.files import holdout_split, prediction_rows, read_records, write_predictions
from nas_core.space import get_space
from tests.predictor.graphs import random_graphs

STRING = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|avg_pool_3x3~0|none~1|nor_conv_1x1~2|"
MATRIX = [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
OPS = ["input", "conv3x3-bn-relu", "output"]


def write(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_graphs_of_every_part_come_back(tmp_path: Path) -> None:
    graphs = random_graphs((3, 5, 1), features=True)
    path = write(tmp_path / "d.jsonl", *({"graph": g.to_dict(), "target": i} for i, g in enumerate(graphs)))
    records = read_records(path, target="target")
    assert list(records.graphs) == list(graphs)
    np.testing.assert_array_equal(records.targets, [0, 1, 2])
    taken = records.take(np.array([2, 0]))
    assert list(taken.graphs) == [graphs[2], graphs[0]] and taken.targets.tolist() == [2, 0]
    assert [note["target"] for note in taken.notes] == [2, 0]


@pytest.mark.parametrize(
    ("reader", "value", "expected"),
    [
        ("nasbench201", STRING, nasbench201_graph(STRING)),
        ("nasbench201", [3, 0, 1, 4, 0, 2], nasbench201_graph([3, 0, 1, 4, 0, 2])),
        ("nasbench101", {"matrix": MATRIX, "ops": OPS}, nasbench101_graph(MATRIX, OPS)),
        ("nasbench101", {"matrix": MATRIX, "ops": OPS, "prune": True}, nasbench101_graph(MATRIX, OPS, prune=True)),
        ("nasbench101", None, nasbench101_graph(MATRIX, OPS)),  # a graph in place of an architecture
    ],
)
def test_architectures_go_through_the_reader(tmp_path: Path, reader: str, value: Any, expected: Graph) -> None:
    record = {"graph": expected.to_dict()} if value is None else {"architecture": value}
    records = read_records(write(tmp_path / "d.jsonl", record), reader_for(reader))
    assert records.graphs[0] == expected and len(records.targets) == 0


def test_architectures_of_a_space(tmp_path: Path) -> None:
    largest = get_space("hat_small").largest()
    largest.save(tmp_path / "a.json", loss=3.0)
    full = json.loads((tmp_path / "a.json").read_text())
    path = write(tmp_path / "d.jsonl", {"architecture": largest.to_dict()}, {"architecture": full})
    assert set(read_records(path, reader_for("translation")).graphs) == {translation_graph(largest)}


GOOD = {"graph": {"ops": [0, 1], "edges": [[0, 1]]}, "target": 0.5}


GRAPH = GOOD["graph"]


@pytest.mark.parametrize(
    ("reader", "record"),
    [
        (None, {"target": 1}),
        (None, {**GOOD, "architecture": STRING}),
        (None, {"architecture": STRING, "target": 1}),
        (None, {"graph": GRAPH, "acc": 1}),
        *((None, {**GOOD, "target": value}) for value in (float("nan"), "0.9", True, None)),
        *((None, {"graph": graph, "target": 1}) for graph in ([1, 2], {"ops": [0]}, {"ops": "ab", "edges": []})),
        (None, {"graph": {"ops": [0, 1], "edges": [[0, 1], [1, 0]]}, "target": 1}),
        (None, {"graph": {"ops": [0, 1], "edges": [[0, 7]]}, "target": 1}),
        ("nasbench201", {"architecture": STRING.replace("skip_connect", "skip"), "target": 1}),
        ("nasbench201", {"architecture": None, "target": 1}),
        ("nasbench101", {"architecture": MATRIX, "target": 1}),
        ("nasbench101", {"architecture": {"matrix": MATRIX, "op": OPS}, "target": 1}),
        ("nasbench101", {"graph": {"ops": [0, 7, 4], "edges": []}, "target": 1}),
        ("translation", {"architecture": {"encoder.layers": 3}, "target": 1}),
        ("translation", {"architecture": "largest", "target": 1}),
    ],
)
def test_wrong_records_are_named(tmp_path: Path, reader: str | None, record: dict[str, Any]) -> None:
    path = write(tmp_path / "d.jsonl", *([GOOD] if reader is None else []), record)
    with pytest.raises(DataError) as caught:
        read_records(path, None if reader is None else reader_for(reader), target="target")
    assert f"{path}, record {1 if reader else 2}: " in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [None, "", "hello\n", "[1, 2]\n"])
def test_files_without_records(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "d.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError, match=r"d\.jsonl"):
        read_records(path)


def test_equal_graphs_are_on_one_side_of_a_split() -> None:
    graphs = random_graphs((6,) * 40).take(np.arange(120) % 40)  # each three times
    learned, held_out = holdout_split(graphs, 0.2, 3)
    assert sorted([*learned, *held_out]) == list(range(120)) and 24 <= len(held_out) <= 26
    assert not set(graphs.take(learned)) & set(graphs.take(held_out))
    repeated = holdout_split(graphs, 0.2, 3)[1]
    assert repeated.tolist() == held_out.tolist() != holdout_split(graphs, 0.2, 4)[1].tolist()
    assert [len(side) for side in holdout_split(graphs, 0.0, 3)] == [120, 0]


def test_predictions_keep_notes_and_rename_those_with_their_names(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", {**GOOD, "name": "a,b", "list": [1], "record": "a", "std": 8}, {**GOOD, "id": 7})
    rows = prediction_rows(read_records(path), np.array([0.25, 1 / 3]), np.array([0.0, 0.5]))
    shared = {"input_record": "a", "input_std": 8}
    assert rows[0] == {"record": 1, "target": 0.5, "name": "a,b", **shared, "prediction": 0.25, "std": 0.0}
    for name in ("p.jsonl", "p.csv"):
        write_predictions(tmp_path / name, rows)
    assert [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()] == rows
    with open(tmp_path / "p.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert table[0]["name"] == "a,b" and table[0]["id"] == "" and table[1]["id"] == "7"
    assert [float(row["prediction"]) for row in table] == [0.25, 1 / 3]
