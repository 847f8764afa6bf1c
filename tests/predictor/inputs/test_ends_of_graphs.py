"""Graphs without one input and one output among those that have them, and operations that stand at added ends."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from nas_core.graph import Graph, Graphs
from nas_core.predictor import ACCURACY_MODELS, AccuracyModel, load_accuracy_model

WHOLE = [Graph([0, 1 + i % 3, 1 + i // 3, 4], [(0, 1), (1, 2), (2, 3)]) for i in range(9)] * 3
OPEN = [Graph([1 + i % 3, 1 + i // 3, 1], [(0, 2), (1, 2)]) for i in range(9)] * 3
GOOD = np.array([float((graph.ops == 1).sum()) + 0.1 * i for i, graph in enumerate(WHOLE)])


def trees() -> AccuracyModel:
    return ACCURACY_MODELS.get("boosted-trees")(trees=2, unseen="ignore")


def test_some_graphs_without_ends_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        trees().fit(WHOLE, GOOD)
        assert not caplog.records
        trees().fit([*WHOLE, *OPEN[:4]], np.arange(31.0))
    assert "4 of 31 graphs have several nodes that nothing feeds" in caplog.text and "graph 27 (from 0)" in caplog.text


def test_graphs_without_ends_asked_of_a_model_of_whole_ones(caplog: pytest.LogCaptureFixture) -> None:
    model = trees().fit(WHOLE, GOOD)
    with caplog.at_level(logging.WARNING):
        model.predict([*WHOLE, OPEN[0]])
        assert not caplog.records
        model.predict(OPEN)
    assert "most of these graphs have several nodes that nothing feeds" in caplog.text


def test_an_unseen_operation_is_no_end() -> None:
    model = trees().fit(OPEN, GOOD)
    first = int(Graphs.of(OPEN).ops.max()) + 1  # the index that the added input has
    asked = [[Graph([index, 1, 1], [(0, 2), (1, 2)])] for index in (first, first + 1, first + 7)]
    one, *others = (model.predict(graphs)[0] for graphs in asked)
    assert all(each == one for each in others)


def test_dead_branches_are_not_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    dead = [Graph([0, *graph.ops[1:3], 2, 4], [(0, 1), (1, 2), (0, 3), (2, 4)]) for graph in WHOLE[:4]]
    with caplog.at_level(logging.WARNING):
        model = trees().fit([*WHOLE, *dead], np.arange(31.0))
        model.save(tmp_path / "trees.safetensors")
        load_accuracy_model(tmp_path / "trees.safetensors").predict(dead[:1])
        assert not caplog.records
        model.predict(OPEN[:1])
    assert "most of these graphs have several nodes" in caplog.text
