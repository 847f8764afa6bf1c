"""RankNAS: the contract, its ranker, importance and pruning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.parts.published import LATENCY_TABLES, absent, hat_table
from nas_core.errors import ConfigError
from nas_core.predictor.metrics import kendall_tau
from nas_core.search import Constraint, EvolutionConfig, HATEvolution, InfeasibleError, RankNAS, RankNASConfig
from nas_core.search.constraints import PredictRows
from nas_core.search.strategies.gaussian_process import (
    SLOPE,
    SLOPE_STD,
    GaussianProcess,
    GaussianProcessRanker,
    negative_log_posterior,
    normal_scores,
    squared_distances,
)
from nas_core.search.strategies.ranker import BoostedRanker, Ranker, pairwise_gradients, tau_importance
from nas_core.space import Architecture, SearchSpace, get_space
from nas_core.space.slots import Rows
from tests.contracts.strategy import SPACE, TINY, drive, limit, quality, size

SMALL = RankNASConfig(samples=80, rounds=4, per_round=20, candidates=200, generations=3, parents=20, children=40)


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


@pytest.mark.parametrize(("make", "least"), [(GaussianProcessRanker, 0.85), (BoostedRanker, 0.6)])
def test_rankers_order_unseen_architectures(make: Callable[..., Ranker], least: float) -> None:
    rows = SPACE.sample_rows(np.random.default_rng(0), 400)
    values = np.array([quality(architecture) for architecture in SPACE.architectures(rows)])
    scores = []
    for _ in range(2):
        ranker = make(SPACE)
        ranker.fit(rows[:200], values[:200])
        scores.append(ranker.score(rows))
    assert kendall_tau(scores[0][200:], values[200:]) > least
    np.testing.assert_array_equal(*scores)


@pytest.mark.skipif(bool(absent(LATENCY_TABLES)), reason=absent(LATENCY_TABLES) or "")
def test_depth_matters_most_to_hats_latencies() -> None:
    data = hat_table("wmt14ende_gpu_titanxp", get_space("hat_wmt14_en_de"))
    importance = tau_importance(data.inputs.astype(np.float64), data.latency_ms)
    names = [choice.name for choice in data.space.choices]
    first, second = np.argsort(-importance)[:2]
    assert names[first] == "decoder.layers" and importance[first] > 0.85 and importance[second] < 0.1


@pytest.mark.parametrize("slope", [0.0, 0.5])
def test_gradient_of_the_marginal_likelihood(slope: float) -> None:
    stream = np.random.default_rng(0)
    points, targets, at = stream.normal(size=(3, 15, 2)), stream.normal(size=15), stream.normal(size=5) / 2
    apart = np.stack([squared_distances(part, part) for part in points])
    linear = slope * stream.normal(size=15)

    def loss(logarithms: np.ndarray) -> float:
        return negative_log_posterior(logarithms, apart, targets, np.zeros(5), np.ones(5), linear)[0]

    gradient = negative_log_posterior(at, apart, targets, np.zeros(5), np.ones(5), linear)[1]
    steps = 1e-5 * np.eye(5)
    assert gradient == pytest.approx([(loss(at + step) - loss(at - step)) / 2e-5 for step in steps], abs=1e-6)


def test_predictions_after_further_results_are_those_of_a_new_process() -> None:
    """Also bit by bit, so that a search that was continued goes the same way."""
    rows = np.unique(SPACE.sample_rows(np.random.default_rng(1), 600), axis=0)
    values = np.array([quality(architecture) for architecture in SPACE.architectures(rows[:90])])
    process = GaussianProcess(SPACE)
    for count in (40, 41, 43, 44, 86, 89):
        process.fit(rows[:count], values[:count])
        new = GaussianProcess(SPACE)
        new.fit(rows[:count], values[:count])
        first, other = process.posterior(rows), new.posterior(rows)
        np.testing.assert_array_equal(first.mean, other.mean)
        np.testing.assert_array_equal(first.deviation, other.deviation)


@pytest.mark.parametrize("prior", [None, lambda rows: -size(SPACE, rows)], ids=["alone", "prior"])
def test_predictions_are_those_of_the_formula(prior: PredictRows | None) -> None:
    rows = np.unique(SPACE.sample_rows(np.random.default_rng(1), 300), axis=0)
    values = np.array([quality(architecture) for architecture in SPACE.architectures(rows[:58])])
    process = GaussianProcess(SPACE, prior)
    process.fit(rows[:58], values)
    posterior = process.posterior(rows)
    points = process.scaled(rows).astype(np.float64)[:, :-1]
    kernel = process.variance * np.exp(-0.5 * squared_distances(points, points))
    mean = np.zeros(len(rows))
    if prior is not None:
        scores = prior(rows)
        slopes = (scores - scores[:55].mean()) / scores[:55].std()  # the results at the last fit of length scales
        kernel, mean = kernel + (SLOPE_STD * slopes[:, None]) @ (SLOPE_STD * slopes[None]), SLOPE * slopes

    def deviation(places: list[int]) -> np.ndarray:
        near = kernel[places]
        noisy = near[:, places] + process.noise * np.eye(len(places))
        return np.sqrt(np.diag(kernel) - np.einsum("ij,ij->j", near, np.linalg.solve(noisy, near)))

    evaluated = list(range(58))
    noisy = kernel[:58, :58] + process.noise * np.eye(58)
    explained = kernel[:, :58] @ np.linalg.solve(noisy, normal_scores(values) - mean[:58])
    assert posterior.mean == pytest.approx(mean + explained, abs=1e-3)
    assert posterior.deviation == pytest.approx(deviation(evaluated), abs=1e-3)
    posterior.assume_mean(100)
    assert posterior.deviation == pytest.approx(deviation([*evaluated, 100]), abs=1e-3)


def test_a_batch_begins_with_the_best() -> None:
    rows = np.unique(SPACE.sample_rows(np.random.default_rng(1), 1000), axis=0)
    values = np.array([quality(architecture) for architecture in SPACE.architectures(rows[:60])])
    ranker = GaussianProcessRanker(SPACE)
    ranker.fit(rows[:60], values)
    batch = ranker.select(rows, 8)
    assert (batch[0] == rows[np.argmin(ranker.score(rows))]).all() and len(np.unique(batch, axis=0)) == 8


def test_a_small_space_is_scored_as_a_whole() -> None:
    """Within the limit nothing is left out, and the best of all is found in few evaluations."""
    rows = np.unique(TINY.sample_rows(np.random.default_rng(0), 500), axis=0)
    bound = limit(45.0, TINY)
    strategy = RankNAS(TINY, [bound], RankNASConfig(samples=4, rounds=9, per_round=2), seed=0)
    losses = {}
    while architectures := strategy.ask(1):
        losses[architectures[0]] = -float(size(TINY, TINY.rows(architectures))[0]) % 17
        strategy.tell(architectures[0], {"loss": losses[architectures[0]]})
    within = rows[bound.values(rows) <= 45.0]
    assert set(losses) <= set(TINY.architectures(within)) and len(losses) == min(22, len(within))


def test_a_prior_selects_the_first_architectures_and_guides_the_search() -> None:
    def loss(architecture: Architecture) -> float:
        return quality(architecture)

    best = []
    for prior in (None, lambda architectures: [-loss(a) + 0.3 * np.sin(97 * loss(a)) for a in architectures]):
        strategy = RankNAS(SPACE, config=RankNASConfig(samples=6, rounds=6, per_round=2), seed=0, prior=prior)
        losses = []
        while architectures := strategy.ask(1):
            losses.append(loss(architectures[0]))
            strategy.tell(architectures[0], {"loss": losses[-1]})
        best.append((min(losses[:3]), min(losses)))
    assert best[1][0] < best[0][0] and best[1][1] < best[0][1]


@pytest.mark.parametrize("batch_size", [0, 4])
@pytest.mark.parametrize("space", [SPACE, TINY], ids=["large", "enumerated"])
def test_a_prior_respects_limits(space: SearchSpace, batch_size: int) -> None:
    bound = limit(float(np.median(size(space, space.sample_rows(np.random.default_rng(0), 500)))), space)
    predicted: list[int] = []

    def predict(rows: Rows) -> np.ndarray:
        predicted.append(len(rows))
        return bound.values(rows)

    counted = Constraint(bound.name, bound.limit, predict, batch_size)
    options = {"seed": 0, "prior": lambda architectures: size(space, space.rows(architectures))}
    for ranker in ("gaussian-process", "boosted"):
        config = RankNASConfig(samples=6, rounds=1, per_round=2, ranker=ranker)
        first = space.rows(RankNAS(space, counted, config, **options).ask(6))
        assert len(first) == 6 and (bound.values(first) <= bound.limit).all()
        assert size(space, first[:3]).min() >= np.median(size(space, first[3:])), "large ones are the best by the prior"
    assert not batch_size or sum(predicted) < 500
    with pytest.raises(InfeasibleError):
        RankNAS(space, Constraint(bound.name, 1e-9, predict, batch_size), config, **options).start()


@pytest.mark.parametrize("scores", [[np.nan] * 1000, [1.0], None, 1.0, "best", {}])
def test_a_prior_without_a_number_for_each_architecture(scores: object) -> None:
    strategy = RankNAS(SPACE, config=SMALL, prior=lambda _: scores)
    with pytest.raises(ConfigError, match="expected one finite number each"):
        strategy.ask(1)


def test_a_prior_is_a_function_and_a_setting() -> None:
    with pytest.raises(ConfigError, match="expected a function"):
        RankNAS(SPACE, prior=[1.0])
    assert RankNAS(SPACE, prior=len).describe() != RankNAS(SPACE).describe()


def test_importance_finds_the_gene_that_matters() -> None:
    rows = SPACE.sample_rows(np.random.default_rng(1), 300)
    names = [choice.name for choice in SPACE.choices]
    depth = SPACE.encode_rows(rows)[:, names.index("decoder.layers")].astype(np.float64)
    values = depth + 0.01 * np.random.default_rng(2).normal(size=300)
    importance = tau_importance(SPACE.encode_rows(rows), values)
    assert names[int(importance.argmax())] == "decoder.layers"
    assert tau_importance(np.ones((300, 2)), values).tolist() == [0.0, 0.0]


def test_few_evaluations_reach_what_evolution_needs_many_for() -> None:
    """On a known objective: a tenth of the evaluations."""
    evolution = HATEvolution(SPACE, [limit(3000.0)], EvolutionConfig(), seed=0)
    drive(evolution, 600)
    ranked = RankNAS(SPACE, [limit(3000.0)], RankNASConfig(generations=5), seed=0)
    drive(ranked, 60)
    best, other = evolution.best(), ranked.best()
    assert best is not None and other is not None
    assert other[1] < best[1]


def test_genes_that_do_not_matter_are_fixed() -> None:
    config = RankNASConfig(samples=100, rounds=1, per_round=10, keep_genes=2)
    strategy = RankNAS(SPACE, [], config, seed=0)
    drive(strategy, 100)
    proposed = strategy.ask(10)
    kept = set(list(strategy.importance["loss"])[:2]) | SPACE.slots.depth_genes
    free = {choice.name for choice in SPACE.choices} - kept
    assert len(proposed) == 10 and free
    best = {name: {architecture[name] for architecture in proposed} for name in free}
    scalar = [name for name in free if SPACE.choice(name).per is None]
    assert all(len(best[name]) == 1 for name in scalar)


def width_alone(rows: np.ndarray) -> np.ndarray:
    """A cost that the encoder's width decides."""
    return SPACE.encode_rows(rows)[:, [choice.name for choice in SPACE.choices].index("encoder.embed_dim")]


def depth_alone(architecture: Architecture) -> float:
    return 9.0 - architecture.number("decoder.layers") + int(architecture.key, 16) % 1000 / 1e6


def after_a_ranking(config: RankNASConfig, constraints: Sequence[Constraint]) -> RankNAS:
    strategy = RankNAS(SPACE, constraints, config, seed=0)
    while strategy.generation < 2:
        for architecture in strategy.ask(100):
            strategy.tell(architecture, {"loss": depth_alone(architecture)})
    return strategy


def test_genes_that_matter_to_a_limit_stay_free() -> None:
    """The loss asks for depth alone and the limit for width: without the limit, width is no longer searched."""
    config = RankNASConfig(samples=60, rounds=2, per_round=20, keep_genes=1, candidates=300, generations=3)
    loose = Constraint("latency_ms", 1e6, width_alone)
    with_limit, loss = after_a_ranking(config, [loose]), after_a_ranking(config, [])
    assert next(iter(with_limit.importance["loss"])) == "decoder.layers"
    assert next(iter(with_limit.importance["latency_ms"])) == "encoder.embed_dim"
    assert with_limit.importance["latency_ms"]["encoder.embed_dim"] > 0.9
    assert with_limit.importance["latency_ms"]["decoder.layers"] < 0.1
    assert set(with_limit.free_genes) == {"encoder.embed_dim"} | SPACE.slots.depth_genes
    assert set(loss.free_genes) == SPACE.slots.depth_genes and list(loss.importance) == ["loss"]
    assert len({a["encoder.embed_dim"] for a in with_limit.ask(12)}) == 2
    assert len({a["encoder.embed_dim"] for a in loss.ask(3)}) == 1  # then what fills up the few that depth alone makes
    assert with_limit.insight() == {"importance": with_limit.importance, "free_genes": with_limit.free_genes}


def test_a_slow_predictor_is_asked_for_what_is_evaluated_alone() -> None:
    predicted: set[bytes] = set()

    def predict(rows: np.ndarray) -> np.ndarray:
        predicted.update(row.tobytes() for row in rows)
        return limit(3000.0).predict_rows(rows)

    slow = Constraint("latency_ms", 3000.0, predict, batch_size=4)
    config = replace(SMALL, samples=20, candidates=2000, children=400)
    evaluated = drive(RankNAS(SPACE, [slow], config, seed=0), 1000)
    assert len(evaluated) > 80
    assert all(limit(3000.0).values(SPACE.rows([one]))[0] <= 3000.0 for one in evaluated)
    assert len(predicted) < 3 * len(evaluated)
