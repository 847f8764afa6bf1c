"""What shuffling a gene between architectures leaves of the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from nas_core.search.strategies.ranker import permutation_importance
from nas_core.space import Architecture, Choice, SearchSpace

SPACE = SearchSpace("s", [Choice.make("layers", [1, 2]), Choice.make("size", [1, 2, 3], per="layers", layers=2)])


class Scored:
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def score(self, rows: Any) -> Any:
        self.asked.append(SPACE.architectures(rows))
        return np.zeros(len(rows))


def test_a_layer_that_came_without_an_option_keeps_its_old_one() -> None:
    """Where sizes move from a network of one layer to one of two, the second layer has the size that it had."""
    networks = [Architecture({"layers": 2, "size": (3, 3)}), Architecture({"layers": 1, "size": (2,)})]
    ranker: Any = Scored()
    permutation_importance(ranker, SPACE, SPACE.rows(networks), np.array([1.0, 0.0]), repeats=8)
    moved = {asked[0]["size"] for asked in ranker.asked if asked[0]["layers"] == 2}
    assert moved == {(3, 3), (2, 3)}
