"""Graphs, and a predictor of them, shared by the tests of predictors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from nas_core.graph import Graphs
from nas_core.predictor import NNFormerPredictor
from nas_core.predictor.statistics import regressions
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


@pytest.fixture(scope="module")
def few_steps() -> Iterator[None]:
    """Gaussian processes of a fifth of the steps, and boosted trees of a quarter of the rounds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regressions, "STEPS", 30)
        patch.setattr(regressions, "ROUNDS", 50)
        yield
