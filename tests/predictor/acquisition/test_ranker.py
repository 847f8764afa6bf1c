"""Expected improvement as a ranker: what it likes, what it refuses, and that RankNAS runs with it."""

from __future__ import annotations

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError
from nas_core.predictor import kendall_tau
from nas_core.predictor.ranker import ImprovementRanker
from nas_core.search import Ranker
from tests.contracts.strategy import SPACE, quality

SMALL = {"processes": 0, "trees": 1}


def test_it_likes_what_is_better_and_learns_anew() -> None:
    rows = SPACE.sample_rows(np.random.default_rng(0), 120)
    values = np.array([quality(architecture) for architecture in SPACE.architectures(rows)])
    ranker: Ranker = ImprovementRanker(SPACE, **SMALL)
    for sign in (1, -1):
        ranker.fit(rows[:60], sign * values[:60])
        scores = ranker.score(rows[60:])
        assert np.isfinite(scores).all() and sign * kendall_tau(scores, values[60:]) > 0.4
    assert ranker.score(rows[:0]).shape == (0,)


def test_wrong_input() -> None:
    rows = SPACE.sample_rows(np.random.default_rng(0), 4)
    with pytest.raises(ConfigError, match="not fitted"):
        ImprovementRanker(SPACE).score(rows)
    with pytest.raises(DataError, match="without different values"):
        ImprovementRanker(SPACE).fit(rows, np.ones(4))
    with pytest.raises(ConfigError, match="has no spread"):
        ImprovementRanker(SPACE, recipe="paper", members=1)
