"""NN-Former as a ranker: it orders what it has not seen, is deterministic, and RankNAS runs with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError
from nas_core.models.translation import translation_graph
from nas_core.predictor.metrics import kendall_tau
from nas_core.predictor.ranker import RANKING, NNFormerRanker, check_readable
from nas_core.search import Ranker, RankNAS, RankNASConfig
from nas_core.space import SearchSpace, get_space
from tests.contracts.strategy import SPACE, TINY, drive, limit, quality

QUICK = replace(RANKING, train=replace(RANKING.train, epochs=4))


def data(count: int, space: SearchSpace = SPACE) -> tuple[np.ndarray, np.ndarray]:
    rows = space.sample_rows(np.random.default_rng(0), count)
    return rows, np.array([quality(architecture) for architecture in space.architectures(rows)])


def test_it_orders_what_it_has_not_seen_and_learns_anew() -> None:
    rows, values = data(460)
    ranker = NNFormerRanker(SPACE)
    for sign in (1, -1):
        ranker.fit(rows[:60], sign * values[:60])
        assert sign * kendall_tau(ranker.score(rows[60:]), values[60:]) > 0.6


def test_networks_larger_than_any_it_learned_from_have_scores() -> None:
    rows, values = data(200)
    sizes = np.array([len(translation_graph(architecture)) for architecture in SPACE.architectures(rows)])
    small = sizes < sizes.max()
    ranker = NNFormerRanker(SPACE, recipe=QUICK)
    ranker.fit(rows[small], values[small])
    scores = ranker.score(rows)
    assert scores.shape == (200,) and np.isfinite(scores).all() and len(np.unique(scores)) > 190
    assert ranker.score(rows[:0]).shape == (0,)


@pytest.mark.parametrize("name", ["mformer_translation_small", "mformer_cifar10_small"])
def test_kinds_of_attention_are_seen(name: str) -> None:
    space = get_space(name)
    rows = space.sample_rows(np.random.default_rng(0), 40)
    linear = np.array([str(architecture.to_dict()).count("linear") for architecture in space.architectures(rows)])
    ranker = NNFormerRanker(space)
    ranker.fit(rows, linear.astype(float))
    assert kendall_tau(ranker.score(rows), linear) > 0.6


def test_wrong_use_is_refused() -> None:
    rows, _ = data(5)
    ranker = NNFormerRanker(SPACE)
    with pytest.raises(ConfigError, match="not fitted"):
        ranker.score(rows)
    with pytest.raises(DataError, match="different values"):
        ranker.fit(rows, np.ones(5))
    with pytest.raises(ConfigError, match="no graph reader takes architectures of space 'tiny'"):
        check_readable(TINY)


def test_ranknas_runs_with_it_and_states_of_other_rankers_are_refused() -> None:
    config = RankNASConfig(samples=20, rankings=2, per_ranking=5, candidates=40, generations=2, parents=8, children=10)
    fitted: list[Ranker] = []

    def make(space: SearchSpace, seed: int) -> Ranker:
        fitted.append(NNFormerRanker(space, seed, QUICK))
        return fitted[-1]

    def strategy(name: str = "nn-former") -> RankNAS:
        return RankNAS(SPACE, [limit(3000.0)], config, ranker=make, ranker_name=name)

    one, other = strategy(), strategy()
    drive(one, 24)
    other.load_state_dict(one.state_dict())
    assert drive(other, 100) == drive(one, 100)
    assert len(fitted) == 3 and one.finished and one.proposed == one.budget == 30
    assert one.best() is not None and one.best() == other.best()
    with pytest.raises(ConfigError, match="ranker = 'nn-former'"):
        strategy("boosted trees").load_state_dict(one.state_dict())
