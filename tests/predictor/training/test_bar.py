"""The bar of a training."""

from __future__ import annotations

import io

import numpy as np
import pytest
from tqdm import tqdm

from nas_core.graph import Graphs
from nas_core.predictor import NNFormerPredictor
from nas_core.predictor.training.bar import told_in
from tests.predictor.graphs import TINY


def test_the_bar_begins_anew_for_each_fit() -> None:
    with tqdm(file=io.StringIO()) as bar:
        progress = told_in(bar)
        for steps in (3, 5):
            for step in range(1, steps + 1):
                progress(step, steps, 0.5)
            assert (bar.n, bar.total) == (steps, steps)


def test_a_training_that_goes_on_begins_where_it_stands() -> None:
    with tqdm(file=io.StringIO()) as bar:
        told_in(bar)(7, 9, 0.5)
        assert (bar.initial, bar.n, bar.total) == (6, 7, 9)


def test_python_users_get_it_by_true(graphs: Graphs, targets: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    monkeypatch.setattr(tqdm, "update", lambda bar, by=1: steps.append(by))
    NNFormerPredictor("statistics", processes=1, trees=1).fit(graphs, targets, progress=True)
    networks = NNFormerPredictor("paper", **{**TINY, "epochs": 1}).fit(graphs, targets, progress=True)
    assert len(steps) >= 5 + networks.info["graphs"] // networks.recipe.train.batch_size
