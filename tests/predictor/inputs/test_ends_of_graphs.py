"""Graphs without one input and one output among those that have them, and operations that stand at added ends."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from nas_core.graph import Graph, Graphs
from nas_core.predictor import ACCURACY_MODELS, AccuracyModel

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
