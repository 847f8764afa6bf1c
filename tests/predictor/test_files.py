"""Graphs and targets from JSON Lines, predictions into a file."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError
from nas_core.graph import Graph, nasbench101_graph, nasbench201_graph
from nas_core.models.translation import translation_graph
from nas_core.predictor import reader_for
from nas_core.predictor.files import new_file, prediction_rows, read_records, write_predictions
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
    whole = json.loads((tmp_path / "a.json").read_text())
    path = write(tmp_path / "d.jsonl", {"architecture": largest.to_dict()}, {"architecture": whole})
    assert set(read_records(path, reader_for("translation")).graphs) == {translation_graph(largest)}


GOOD = {"graph": {"ops": [0, 1], "edges": [[0, 1]]}, "target": 0.5}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"target": 1}, "either a field 'graph' or a field 'architecture'; got 'target'"),
        ({**GOOD, "architecture": STRING}, "either a field 'graph'"),
        ({"architecture": STRING, "target": 1}, "--reader: nasbench101, "),
        ({"graph": GOOD["graph"], "acc": 1}, "no field 'target'.*'acc'.*--target"),
        ({**GOOD, "target": float("nan")}, "target is nan"),
        ({**GOOD, "target": float("inf")}, "target is inf"),
        ({**GOOD, "target": "0.9"}, "expected a number"),
        ({**GOOD, "target": True}, "expected a number"),
        ({**GOOD, "target": None}, "target is null"),
        ({"graph": [1, 2], "target": 1}, "got list"),
        ({"graph": {"ops": [0]}, "target": 1}, "parts ops and edges"),
        ({"graph": {"ops": [0, 1], "edges": [[0, 1], [1, 0]]}, "target": 1}, "cycle"),
        ({"graph": {"ops": [0, 1], "edges": [[0, 7]]}, "target": 1}, "node 7"),
        ({"graph": {"ops": "ab", "edges": []}, "target": 1}, "whole numbers"),
        ({"graph": {"ops": [0], "edges": [], "static": [10**300]}, "target": 1}, "is no number"),
        ({"graph": {"ops": [0, 1], "edges": [], "static": [1]}, "target": 1}, "one set"),
    ],
)
def test_wrong_records_are_named(tmp_path: Path, record: dict[str, Any], message: str) -> None:
    path = write(tmp_path / "d.jsonl", GOOD, record)
    with pytest.raises(DataError, match=message) as caught:
        read_records(path, target="target")
    assert str(path) in str(caught.value)
    assert "record 2: " in str(caught.value) or message == "one set"


@pytest.mark.parametrize(
    ("reader", "record", "message"),
    [
        ("nasbench201", {"architecture": STRING.replace("skip_connect", "skip")}, "Did you mean 'skip_connect'"),
        ("nasbench201", {"architecture": [9] * 6}, "index of NAS-Bench-201 9"),
        ("nasbench201", {"architecture": None}, "whole numbers"),
        ("nasbench101", {"architecture": MATRIX}, "got list; expected the parts matrix, ops, prune"),
        ("nasbench101", {"architecture": {"matrix": MATRIX, "op": OPS}}, "got parts matrix, op; expected the parts"),
        ("nasbench101", {"architecture": {"matrix": "abc", "ops": OPS}}, "adjacency"),
        ("nasbench101", {"graph": {"ops": [0, 7, 4], "edges": []}}, "operation index 7; reader 'nasbench101' has 0 to"),
        ("translation", {"architecture": {"encoder.layers": 3}}, "no gene"),
        ("translation", {"architecture": "largest"}, "expected an Architecture"),
        ("transnasbench_micro", {"architecture": {"architecture": [0] * 6, "operations": 5}}, "cannot be read"),
    ],
)
def test_what_the_reader_does_not_take(tmp_path: Path, reader: str, record: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match="record 1: .*" + message):
        read_records(write(tmp_path / "d.jsonl", record), reader_for(reader))


@pytest.mark.parametrize("content", [None, "", "\n\n", "hello\n", "[1, 2]\n", '{"graph": \n{}}\n'])
def test_files_that_hold_no_records(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "d.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError, match=r"d\.jsonl"):
        read_records(path)


def test_results_overwrite_nothing(tmp_path: Path) -> None:
    made, data = tmp_path / "p.jsonl", write(tmp_path / "d.jsonl", GOOD)
    assert new_file(made, False, [data], [".jsonl"]) == made
    made.write_text("x")
    assert new_file(made, True) == made
    for path, force, message in (
        (made, False, "--force"),
        (data, True, "also an input"),
        (tmp_path / ".." / tmp_path.name / "d.jsonl", True, "also an input"),
        (tmp_path, True, "folder"),
        (tmp_path / "p.txt", True, r"ends in \.jsonl or \.csv"),
    ):
        with pytest.raises(ConfigError, match=message):
            new_file(path, force, [data], (".jsonl", ".csv") if path.suffix == ".txt" else ())


def test_notes_do_not_replace_what_is_predicted(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", {**GOOD, "record": "a", "prediction": 9, "spread": 8})
    (row,) = prediction_rows(read_records(path), np.array([0.25]), {"spread": np.array([0.5])})
    assert (row["record"], row["prediction"], row["spread"]) == (1, 0.25, 0.5)
    assert (row["input_record"], row["input_prediction"], row["input_spread"]) == ("a", 9, 8)


def test_predictions_keep_what_stands_beside_the_graph(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", {**GOOD, "name": "a,b", "list": [1]}, {**GOOD, "id": 7})
    rows = prediction_rows(read_records(path), np.array([0.25, 1 / 3]), {"spread": np.array([0.0, 0.5])})
    assert rows[0] == {"record": 1, "target": 0.5, "name": "a,b", "prediction": 0.25, "spread": 0.0}
    for name in ("p.jsonl", "p.csv"):
        write_predictions(tmp_path / name, rows)
    assert [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()] == rows
    with open(tmp_path / "p.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert table[0]["name"] == "a,b" and table[0]["id"] == "" and table[1]["id"] == "7"
    assert [float(row["prediction"]) for row in table] == [0.25, 1 / 3]
