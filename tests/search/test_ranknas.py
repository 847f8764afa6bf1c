"""RankNAS: the contract, its ranker, importance and pruning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks._published import LATENCY_TABLES, absent
from nas_core.errors import ConfigError, DataError, UnknownChoiceError
from nas_core.latency import read_hat_table
from nas_core.latency.metrics import kendall_tau
from nas_core.search import (
    BoostedRanker,
    Constraint,
    EvolutionConfig,
    HATEvolution,
    RankerConfig,
    RankNAS,
    RankNASConfig,
    Strategy,
)
from nas_core.search.ranker import OBJECTIVES, pairwise_gradients, permutation_importance, tau_importance
from nas_core.space import SearchSpace
from tests.contracts.strategy import SPACE, StrategyContract, drive, limit, quality

SMALL = RankNASConfig(samples=80, rounds=4, finalists=20, candidates=200, iterations=3, parents=20, children=40)


class TestRankNAS(StrategyContract):
    def make(self, space: SearchSpace, constraints: Sequence[Constraint], seed: int) -> Strategy:
        return RankNAS(space, constraints, SMALL, seed=seed)


def test_pairwise_gradients_are_those_of_the_loss() -> None:
    stream = np.random.default_rng(0)
    values, scores = stream.integers(0, 5, 12).astype(float), stream.normal(size=12)

    def loss(scores: np.ndarray) -> float:
        total = 0.0
        for a in range(12):
            for b in range(12):
                if values[a] > values[b]:
                    total += np.log1p(np.exp(-(scores[a] - scores[b])))
        return total

    gradient, curvature = pairwise_gradients(values)(scores, None)
    pairs = [(values != value).sum() for value in values]
    for index in range(12):
        step = np.zeros(12)
        step[index] = 1e-4
        first = (loss(scores + step) - loss(scores - step)) / 2e-4
        second = (loss(scores + step) + loss(scores - step) - 2 * loss(scores)) / 1e-8
        assert gradient[index] * pairs[index] == pytest.approx(first, abs=1e-4)
        assert curvature[index] * pairs[index] == pytest.approx(second, abs=1e-3)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_rankers_order_what_they_have_not_seen(objective: str) -> None:
    rows = SPACE.sample_rows(np.random.default_rng(0), 500)
    values = np.array([quality(architecture) for architecture in SPACE.architectures(rows)])
    ranker = BoostedRanker(SPACE, RankerConfig(objective=objective, encoding="layers"))
    with pytest.raises(ConfigError, match="not fitted"):
        ranker.score(rows)
    ranker.fit(rows[:300], values[:300])
    assert kendall_tau(ranker.score(rows[300:]), values[300:]) > 0.6
    again = BoostedRanker(SPACE, RankerConfig(objective=objective, encoding="layers"))
    again.fit(rows[:300], values[:300])
    np.testing.assert_array_equal(again.score(rows), ranker.score(rows))


def test_the_pairwise_ranker_sees_order_alone() -> None:
    rows = SPACE.sample_rows(np.random.default_rng(0), 100)
    values = np.array([quality(architecture) for architecture in SPACE.architectures(rows)])
    scores = []
    for seen in (values, np.exp(3 * values)):
        ranker = BoostedRanker(SPACE)
        ranker.fit(rows, seen)
        scores.append(ranker.score(rows))
    np.testing.assert_array_equal(*scores)


@pytest.mark.skipif(bool(absent(LATENCY_TABLES)), reason=absent(LATENCY_TABLES) or "")
def test_hats_latencies_are_ranked_from_a_hundred() -> None:
    data = read_hat_table(LATENCY_TABLES, "wmt14ende_gpu_titanxp")
    features, values = data.inputs.astype(np.float64), data.latency_ms
    importance = tau_importance(features, values)
    names = [choice.name for choice in data.space.choices]
    first, second = np.argsort(-importance)[:2]
    assert names[first] == "decoder.layers" and importance[first] > 0.85 and importance[second] < 0.1
    for count, least in ((100, 0.80), (500, 0.815)):
        taus = []
        for seed in range(3):
            order = np.random.default_rng(seed).permutation(len(values))
            test, train = order[:500], order[500 : 500 + count]
            ranker = BoostedRanker(data.space)
            ranker.fit_features(features[train], values[train])
            taus.append(kendall_tau(ranker.score_features(features[test]), values[test]))
        assert np.mean(taus) >= least, (count, taus)


def test_importance_finds_the_gene_that_matters() -> None:
    rows = SPACE.sample_rows(np.random.default_rng(1), 300)
    names = [choice.name for choice in SPACE.choices]
    depth = SPACE.encode_rows(rows)[:, names.index("decoder.layers")].astype(np.float64)
    values = depth + 0.01 * np.random.default_rng(2).normal(size=300)
    importance = tau_importance(SPACE.encode_rows(rows), values)
    assert names[int(importance.argmax())] == "decoder.layers"
    ranker = BoostedRanker(SPACE)
    ranker.fit(rows[:200], values[:200])
    lost = permutation_importance(ranker, SPACE, rows[200:], values[200:])
    assert names[int(lost.argmax())] == "decoder.layers" and lost.max() > 0.2
    assert abs(lost[names.index("encoder.embed_dim")]) < 0.02
    assert tau_importance(np.ones((300, 2)), values).tolist() == [0.0, 0.0]


def test_few_evaluations_reach_what_evolution_needs_many_for() -> None:
    """On a known objective: a tenth of the evaluations."""
    reached = []
    for seed in range(3):
        evolution = HATEvolution(SPACE, [limit(3000.0)], EvolutionConfig(), seed=seed)
        drive(evolution, 1000)
        ranked = RankNAS(SPACE, [limit(3000.0)], RankNASConfig(samples=40, rounds=6, finalists=10, keep=0), seed=seed)
        drive(ranked, 100)
        best, other = evolution.best(), ranked.best()
        assert best is not None and other is not None
        reached.append(other[1] - best[1])
    assert np.mean(reached) < 0.1


def test_genes_that_do_not_matter_are_fixed() -> None:
    strategy = RankNAS(SPACE, [], RankNASConfig(samples=100, rounds=1, finalists=10, keep=2, explore=0.0), seed=0)
    drive(strategy, 100)
    proposed = strategy.ask(10)
    kept = set(list(strategy.importance)[:2]) | SPACE.slots.depth_genes
    free = {choice.name for choice in SPACE.choices} - kept
    assert len(proposed) == 10 and free
    best = {name: {architecture[name] for architecture in proposed} for name in free}
    scalar = [name for name in free if SPACE.choice(name).per is None]
    assert all(len(best[name]) == 1 for name in scalar)


@pytest.mark.parametrize(
    "settings",
    [{"samples": 1}, {"rounds": 0}, {"keep": -1}, {"explore": 1.5}, {"mutation_prob": 0.0}, {"finalists": 2.5}],
)
def test_bad_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        RankNASConfig(**settings)


def test_bad_rankers_are_refused() -> None:
    with pytest.raises(UnknownChoiceError, match="pairwise"):
        RankerConfig(objective="pairwize")
    with pytest.raises(ConfigError, match="leaves 1"):
        RankerConfig(leaves=1)
    for setting in ({"members": 2.5}, {"rounds": "sixty"}, {"min_leaf": True}, {"learning_rate": "x"}):
        with pytest.raises(ConfigError, match=f"{next(iter(setting))} .*; expected a"):
            RankerConfig(**setting)
    with pytest.raises(DataError, match="different values"):
        BoostedRanker(SPACE).fit(SPACE.sample_rows(np.random.default_rng(0), 5), np.ones(5))
