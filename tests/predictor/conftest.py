"""Graphs, and a predictor of them, shared by the tests of predictors."""

from __future__ import annotations

import numpy as np
import pytest

from nas_core.graph import Graphs
from nas_core.predictor import NNFormerPredictor
from tests.predictor.graphs import TINY, random_graphs, sizes_of_operations

SIZES = tuple([5, 6, 7] * 14)


@pytest.fixture(scope="session")
def graphs() -> Graphs:
    return random_graphs(SIZES, seed=1)


@pytest.fixture(scope="session")
def targets(graphs: Graphs) -> np.ndarray:
    return sizes_of_operations(graphs)


@pytest.fixture(scope="session")
def fitted(graphs: Graphs, targets: np.ndarray) -> NNFormerPredictor:
    return NNFormerPredictor("paper", **TINY).fit(graphs, targets)
