"""Rankers that read graphs: they order unseen architectures, and RankNAS runs with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nas_core.predictor.metrics import kendall_tau
from nas_core.predictor.ranker import RANKING, NNFormerRanker
from nas_core.search import RankNAS, RankNASConfig
from nas_core.search.strategies.ranker import Ranker
from nas_core.space import SearchSpace
from tests.contracts.strategy import SPACE, drive, limit, quality

QUICK, SHORT = (replace(RANKING, train=replace(RANKING.train, epochs=epochs)) for epochs in (4, 20))


def data(count: int, space: SearchSpace = SPACE) -> tuple[np.ndarray, np.ndarray]:
    rows = space.sample_rows(np.random.default_rng(0), count)
    return rows, np.array([quality(architecture) for architecture in space.architectures(rows)])


def test_it_orders_unseen_architectures_and_learns_anew() -> None:
    rows, values = data(260)
    ranker: Ranker = NNFormerRanker(SPACE, recipe=SHORT)
    for sign in (1, -1):
        ranker.fit(rows[:60], sign * values[:60])
        assert sign * kendall_tau(ranker.score(rows[60:]), values[60:]) > 0.4
    assert ranker.score(rows[:0]).shape == (0,)


def test_ranknas_runs_with_it_and_replays_it() -> None:
    config = RankNASConfig(samples=20, rankings=2, per_ranking=5, candidates=40, generations=2, parents=8, children=10)
    fitted: list[Ranker] = []

    def make(space: SearchSpace, seed: int) -> Ranker:
        fitted.append(NNFormerRanker(space, seed, QUICK))
        return fitted[-1]

    first, second = (RankNAS(SPACE, [limit(3000.0)], config, ranker=make) for _ in range(2))
    proposals = drive(first, 24)
    second.replay({architecture: {"loss": quality(architecture)} for architecture in proposals})
    assert drive(second, 100) == drive(first, 100)
    assert len(fitted) == 4 and first.finished and first.proposed == first.budget == 30
    assert first.best() is not None and first.best() == second.best()
