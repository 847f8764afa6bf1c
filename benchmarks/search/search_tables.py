"""Queries until a search finds one of the best networks of a benchmark, and its best result under a limit.

Run: ``python -m benchmarks search_tables [--seeds 20] [--limits DEVICE ..] [--fronts DEVICE ..]``. NAS_EXT_DATA names
the folder of the tables, which are not in this repository.

A query is one new cell. The best cells are the 0.1 %, at least five, with the highest mean test accuracy. A query
returns the validation accuracy on NAS-Bench-201. On NAS-Bench-101 it returns the mean test accuracy, since most
validation accuracies are not published. ``transnas-object`` has 662 chains with one accuracy. A search ends
when one of the best cells is found or the budget is spent.

``--limits`` measures the best validation accuracy on NAS-Bench-201 after 50 and 100 queries, among cells not slower
than the median of a device. ``--fronts`` measures the hypervolume of validation error and latency on a device after 50,
100 and 200 queries, as a share of that of all cells; the reference point is the worst value of each metric.

``prior`` is the zero-shot predictor, fitted without the search space: as the prior of a search, or alone. Alone, up to
20,000 random cells (all of a small space) are queried in its order.
"""

from __future__ import annotations

import argparse
import functools
import itertools
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import optuna
from numpy.typing import NDArray

from benchmarks.parts.cells import (
    Table,
    nasbench101_table,
    nasbench201_table,
    transnas_object_table,
)
from benchmarks.parts.published import NASBENCH201_LATENCY
from benchmarks.parts.record import command, write_result
from benchmarks.predictor.prior import fit_prior
from nas_core.files.reading import read_json
from nas_core.latency.machine import describe_machine
from nas_core.predictor.statistics.operation_features import operation_features
from nas_core.search import (
    Constraint,
    EvolutionConfig,
    HATEvolution,
    HypervolumeConfig,
    HypervolumeSearch,
    MultiObjectiveEvolution,
    RandomConfig,
    RandomSearch,
    RankNAS,
    RankNASConfig,
)
from nas_core.search.registry import config_of
from nas_core.search.strategies.proposals import ENUMERATED
from nas_core.search.strategies.ranknas import Prior
from nas_core.space import Architecture
from nas_core.space.slots import Rows
from optuna_ext import suggest_architecture

RESULT = Path(__file__).parents[1] / "results" / "search_tables.json"
SHARE, BUDGET, AFTER, FRONT_AFTER = 0.001, 1500, (50, 100), (50, 100, 200)
FEWEST_BEST = 5
"""Smallest number of best networks, for small tables."""
ENUMERABLE = 100_000
"""Number of architectures up to which the plain Gaussian process scores a whole space."""
Array = NDArray[np.float64]
TABLES: Mapping[str, Callable[[], Table]] = {
    "nasbench201": nasbench201_table,
    "nasbench101": nasbench101_table,
    "transnas-object": transnas_object_table,
}
HELD_OUT = {"nasbench201": "nasbench201", "nasbench101": "nasbench101", "transnas-object": "transnas"}
"""Space of a table -> space without which its prior is fitted."""
EVOLUTION = EvolutionConfig(iterations=400, population=20, parents=10, mutation_prob=0.3)


class Search(Protocol):
    """Ask/tell protocol of all strategies."""

    def ask(self, n: int = 1) -> list[Architecture]: ...

    def tell(self, architecture: Architecture, metrics: Mapping[str, Any] | None) -> None: ...


class RegularizedEvolution:
    """Regularized evolution (Real et al., "Regularized Evolution for Image Classifier Architecture Search", 2019)."""

    def __init__(self, table: Table, seed: int, population: int = 100, sample: int = 10) -> None:
        self.table, self.rng = table, np.random.default_rng(seed)
        self.population_size, self.sample = population, sample
        self.population: deque[tuple[Architecture, float]] = deque()

    def ask(self, n: int = 1) -> list[Architecture]:
        space = self.table.space
        while True:
            if len(self.population) < self.population_size:
                row = space.sample_rows(self.rng, 1)
            else:
                drawn = self.rng.choice(len(self.population), self.sample, replace=False)
                parent = min((self.population[index] for index in drawn), key=lambda member: member[1])[0]
                row = space.rows([parent])
                column = int(self.rng.integers(row.shape[1]))
                options = len(space.choices[column].options[0])
                row[0, column] = (row[0, column] + self.rng.integers(1, options)) % options
            if self.table.valid(row)[0]:
                return space.architectures(row)

    def tell(self, architecture: Architecture, metrics: Mapping[str, Any] | None) -> None:
        assert metrics is not None
        self.population.append((architecture, metrics["loss"]))
        if len(self.population) > self.population_size:
            self.population.popleft()


class BayesianOptimization:
    """Bayesian optimisation: Gaussian process on one-hot genes, best confidence bound first."""

    def __init__(self, table: Table, seed: int) -> None:
        self.space, self.proposed, self.values = table.space, list[int](), list[list[float]]()
        grid = np.stack(np.unravel_index(np.arange(table.space.cardinality()), table.space.slots.sizes), 1)
        self.rows = grid.astype(np.int16)
        self.remaining = np.ones(len(grid), np.bool_)
        for constraint in table.limits:
            self.remaining &= constraint.values(self.rows) <= constraint.limit
        self.initial = np.random.default_rng(seed).permutation(np.flatnonzero(self.remaining))[:10].tolist()
        self.genes = table.space.encode_rows(self.rows, "onehot").astype(np.float32)

    def ask(self, n: int = 1) -> list[Architecture]:
        if len(self.proposed) < len(self.initial):
            row = self.initial[len(self.proposed)]
        else:
            row = int(np.flatnonzero(self.remaining)[self._next()])
        self.proposed.append(row)
        self.remaining[row] = False
        return self.space.architectures(self.rows[[row]])

    def tell(self, architecture: Architecture, metrics: Mapping[str, Any] | None) -> None:
        assert metrics is not None
        self.values.append(list(metrics.values()))

    def _next(self) -> int:
        return int(np.argmin(self._bound(np.array(self.values)[:, 0])))

    def _bound(self, values: Array) -> Array:
        """Return the lower confidence bounds of the remaining cells, in standard deviations of the values."""
        points, values = self.genes[self.proposed], (values - values.mean()) / (values.std() + 1e-9)
        fits = []
        for length, noise in itertools.product((1, 2, 4), (0.01, 0.1)):
            kernel = self._kernel(points, points, length) + noise * np.eye(len(points))
            weights = np.linalg.solve(kernel, values)
            fits.append((values @ weights + np.linalg.slogdet(kernel)[1], length, kernel, weights))
        _, length, kernel, weights = min(fits, key=lambda fit: fit[0])
        similarity = self._kernel(self.genes[self.remaining], points, length)
        variance = 1 - (similarity * (similarity @ np.linalg.inv(kernel).astype(np.float32))).sum(1)
        bound: Array = similarity @ weights - 2 * np.sqrt(np.maximum(variance, 0))
        return bound

    def _kernel(self, first: Array, second: Array, length: float) -> Array:
        distances = (first**2).sum(1)[:, None] + (second**2).sum(1) - 2 * first @ second.T
        kernel: Array = np.exp(-distances / (2 * length**2))
        return kernel


class ParEGO(BayesianOptimization):
    """Bayesian optimisation of two metrics (ParEGO): one Gaussian process per metric, and a random weight per query.

    The query minimises the augmented Chebyshev scalarisation of the bounds. Knowles, "ParEGO", IEEE Transactions on
    Evolutionary Computation 10, 2006.
    """

    def __init__(self, table: Table, seed: int) -> None:
        super().__init__(table, seed)
        self.weights = np.random.default_rng([seed, 1])

    def _next(self) -> int:
        weight, scaled = self.weights.random(), []
        for values, share in zip(np.array(self.values).T, (weight, 1 - weight), strict=True):
            best, width = (values.min() - values.mean()) / values.std(), np.ptp(values) / values.std()
            scaled.append(share * (self._bound(values) - best) / width)
        return int(np.argmin(np.max(scaled, 0) + 0.05 * np.sum(scaled, 0)))


class TPE:
    """Optuna's TPE with constraints; cells above a limit are reported without a query."""

    def __init__(self, table: Table, seed: int, metrics: int = 1) -> None:
        self.space, self.limits = table.space, table.limits
        constraints = {"constraints_func": lambda trial: trial.user_attrs["excess"]} if self.limits else {}
        sampler = optuna.samplers.TPESampler(seed=seed, **constraints)
        self.study = optuna.create_study(sampler=sampler, directions=["minimize"] * metrics)

    def ask(self, n: int = 1) -> list[Architecture]:
        while True:
            self.trial = self.study.ask()
            architecture = suggest_architecture(self.trial, self.space)
            row = self.space.rows([architecture])
            excess = [float(limit.values(row)[0] - limit.limit) for limit in self.limits]
            self.trial.set_user_attr("excess", excess)
            if all(value <= 0 for value in excess):
                return [architecture]
            self.study.tell(self.trial, state=optuna.trial.TrialState.PRUNED)

    def tell(self, architecture: Architecture, metrics: Mapping[str, Any] | None) -> None:
        assert metrics is not None
        self.study.tell(self.trial, list(metrics.values()))


def prior_of(table: Table) -> Prior:
    fitted = _fitted_without(HELD_OUT[table.space.name])

    def scores(architectures: Sequence[Architecture]) -> Sequence[float]:
        features = operation_features(table.graphs(table.space.rows(architectures)))
        return fitted.columns(features)[:, 0].tolist()  # type: ignore[no-any-return]

    return scores


_fitted_without = functools.cache(fit_prior)


class PriorAlone:
    """Cells in the order of the prior."""

    def __init__(self, table: Table, seed: int) -> None:
        strategy = RandomSearch(table.space, table.limits, seed=seed)
        rows = strategy.proposals.enumerated
        if not len(rows):
            rows = strategy.proposals.take(lambda k: table.space.sample_rows(strategy.rng, k), ENUMERATED, set())
        architectures = table.space.architectures(rows)
        order = np.argsort(-np.array(prior_of(table)(architectures)), kind="stable")
        self.architectures = iter([architectures[index] for index in order])

    def ask(self, n: int = 1) -> list[Architecture]:
        return list(itertools.islice(self.architectures, n))

    def tell(self, architecture: Architecture, metrics: Mapping[str, Any] | None) -> None:
        pass


def ranknas(table: Table, seed: int, ranker: str = "gaussian-process", prior: Prior | None = None) -> RankNAS:
    if ranker == "boosted":
        config = RankNASConfig(
            samples=20, rounds=400, candidates=1000, generations=3, parents=50, children=100, ranker=ranker
        )
    else:
        config = RankNASConfig(rounds=400)
    return RankNAS(table.space, table.limits, config, seed=seed, prior=prior)


def sequential_ranknas(table: Table, seed: int) -> RankNAS:
    return RankNAS(table.space, table.limits, RankNASConfig(samples=10, rounds=400, per_round=1), seed=seed)


GAUSSIAN_PROCESS, NSGA2 = "plain gaussian process", "nsga-ii"
STRATEGIES: Mapping[str, Callable[[Table, int], Search]] = {
    "random": lambda t, seed: RandomSearch(t.space, t.limits, RandomConfig(evaluations=4 * BUDGET), seed=seed),
    "regularised evolution": RegularizedEvolution,
    "hat evolution": lambda t, seed: HATEvolution(t.space, t.limits, EVOLUTION, seed=seed),
    "tpe": TPE,
    GAUSSIAN_PROCESS: BayesianOptimization,
    "ranknas": ranknas,
    "ranknas, one at a time": sequential_ranknas,
    "ranknas with prior": lambda t, seed: ranknas(t, seed, prior=prior_of(t)),
    "prior alone": PriorAlone,
    "ranknas, boosted": lambda t, seed: ranknas(t, seed, "boosted"),
}


def latencies(device: str) -> Array:
    """Return the milliseconds of the cells of NAS-Bench-201."""
    with np.load(NASBENCH201_LATENCY, allow_pickle=False) as content:
        latency_ms: Array = content["latency_ms"][:, content["devices"].tolist().index(device)].astype(np.float64)
    return latency_ms


@dataclass(frozen=True)
class LimitedTable(Table):
    """NAS-Bench-201 without the cells above the median latency of a device."""

    limit: Constraint
    optimum: float
    """Highest validation accuracy within the limit."""

    @property
    def limits(self) -> list[Constraint]:
        return [self.limit]

    @classmethod
    def of(cls, device: str) -> LimitedTable:
        table = nasbench201_table()
        latency = latencies(device)
        limit = Constraint("latency_ms", float(np.median(latency)), lambda rows: latency[table.cells(rows)])
        optimum = float(table.observed_accuracy[latency <= limit.limit].max())
        return cls(**vars(table), limit=limit, optimum=optimum)


@dataclass(frozen=True)
class FrontTable(Table):
    """NAS-Bench-201 with two metrics: validation accuracy and latency on a device."""

    latency_ms: Array

    @classmethod
    def of(cls, device: str) -> FrontTable:
        return cls(**vars(nasbench201_table()), latency_ms=latencies(device))

    def metrics(self, cell: int) -> dict[str, float]:
        return {**super().metrics(cell), "latency_ms": float(self.latency_ms[cell])}

    def hypervolume(self, cells: Sequence[int] | slice = slice(None)) -> float:
        """Return the area between the cells and the worst value of each metric."""
        area, max_latency_ms = 0.0, float(self.latency_ms.max())
        min_accuracy = float(self.observed_accuracy.min())
        for accuracy, latency in sorted(zip(self.observed_accuracy[cells], self.latency_ms[cells], strict=True))[::-1]:
            area += (accuracy - min_accuracy) * max(max_latency_ms - latency, 0.0)
            max_latency_ms = min(max_latency_ms, latency)
        return area


QUANTILES = (0.1, 0.25, 0.5, 0.75, 1.0)


class RankNASUnderLimits:
    """One RankNAS per latency limit, at quantiles of a device, in alternation; all searches receive all results."""

    def __init__(self, table: FrontTable, seed: int) -> None:
        def latency(rows: Rows) -> Array:
            return table.latency_ms[table.cells(rows)]

        limits = [Constraint("latency_ms", float(limit), latency) for limit in np.quantile(table.latency_ms, QUANTILES)]
        config = RankNASConfig(samples=4, per_round=1)
        self.searches = [RankNAS(table.space, limit, config, seed=seed) for limit in limits]
        self.index = 0

    def ask(self, n: int = 1) -> list[Architecture]:
        self.index = (self.index + 1) % len(self.searches)
        return self.searches[self.index].ask(1)

    def tell(self, architecture: Architecture, metrics: Mapping[str, Any] | None) -> None:
        for search in self.searches:
            search.tell(architecture, metrics)


def nsga2(table: Table, seed: int, evaluations: int = FRONT_AFTER[-1]) -> MultiObjectiveEvolution:
    config = config_of("multi-objective", {}, evaluations)
    return MultiObjectiveEvolution(table.space, config=config, seed=seed)


def hypervolume_search(table: Table, seed: int, per_round: int = 5) -> HypervolumeSearch:
    return HypervolumeSearch(table.space, config=HypervolumeConfig(per_round=per_round), seed=seed)


FRONTS: Mapping[str, Callable[[FrontTable, int], Search]] = {
    "random": lambda t, seed: RandomSearch(t.space, config=RandomConfig(evaluations=BUDGET), seed=seed),
    NSGA2: nsga2,
    "tpe": lambda t, seed: TPE(t, seed, metrics=2),
    GAUSSIAN_PROCESS: ParEGO,
    "ranknas under five limits": RankNASUnderLimits,
    "hypervolume": hypervolume_search,
    "hypervolume, one at a time": lambda t, seed: hypervolume_search(t, seed, per_round=1),
}


def run_search(search: Search, table: Table, max_cells: int, best: Collection[int] = ()) -> list[int]:
    """Return the different cells in order of their queries, up to ``max_cells`` or one of the best."""
    cells: dict[int, None] = {}
    for _ in range(20 * BUDGET):
        architectures = search.ask(1)
        if not architectures or len(cells) >= max_cells:
            break
        cell = int(table.cells(table.space.rows(architectures))[0])
        cells[cell] = None
        if cell in best:
            break
        search.tell(architectures[0], table.metrics(cell))
    return list(cells)


def queries_to_best(search: Search, table: Table, best: set[int]) -> int:
    """Return the number of queries until one of the best cells; the budget if none is found."""
    cells = run_search(search, table, BUDGET, best)
    return len(cells) if cells and cells[-1] in best else BUDGET


def limited_row(strategy: str, device: str, seeds: int) -> dict[str, Any]:
    """Return a row with the best validation accuracy under a limit after each number of queries in :data:`AFTER`."""
    table, accuracies = LimitedTable.of(device), []
    for seed in range(seeds):
        cells = run_search(STRATEGIES[strategy](table, seed), table, max(AFTER))
        accuracy = np.maximum.accumulate(table.observed_accuracy[cells])
        accuracies.append([100 * accuracy[min(after, len(cells)) - 1] for after in AFTER])
    means = {str(after): round(float(mean), 2) for after, mean in zip(AFTER, np.mean(accuracies, 0), strict=True)}
    row = {"device": device, "strategy": strategy, "accuracy_after": means, "seeds": seeds}
    return {**row, "optimum": round(100 * table.optimum, 2)}


def front_row(strategy: str, device: str, seeds: int, after: Sequence[int] = FRONT_AFTER) -> dict[str, Any]:
    """Return a row with the share of the best hypervolume after each number of queries, ascending."""
    table, shares = FrontTable.of(device), []
    for seed in range(seeds):
        if strategy == NSGA2:  # its population depends on the number of queries
            runs = [run_search(nsga2(table, seed, queries), table, queries) for queries in after]
        else:
            runs = [run_search(FRONTS[strategy](table, seed), table, after[-1])] * len(after)
        areas = [table.hypervolume(cells[:queries]) for cells, queries in zip(runs, after, strict=True)]
        shares.append([area / table.hypervolume() for area in areas])
    share = {str(queries): round(float(mean), 4) for queries, mean in zip(after, np.mean(shares, 0), strict=True)}
    return {"device": device, "strategy": strategy, "share_after": share, "seeds": seeds}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=list(TABLES))
    parser.add_argument(
        "--limits", nargs="+", default=[], metavar="DEVICE", help="devices whose median latency is the limit"
    )
    parser.add_argument("--fronts", nargs="+", default=[], metavar="DEVICE", help="devices whose latency is minimised")
    parser.add_argument(
        "--after", nargs="+", type=int, default=list(FRONT_AFTER), help="numbers of queries for --fronts, ascending"
    )
    parser.add_argument("--strategies", nargs="+", choices=[*STRATEGIES, *(FRONTS.keys() - STRATEGIES.keys())])
    parser.add_argument(
        "--out", type=Path, default=RESULT, help="file of the result; keeps rows of other tables and strategies"
    )
    options = parser.parse_args(argv)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    before = read_json(options.out) if options.out.exists() else {}
    rows, limited_rows, front_rows = (before.get(name, []) for name in ("rows", "limited", "fronts"))
    table_strategies, front_strategies = (
        [name for name in options.strategies or available if name in available] for available in (STRATEGIES, FRONTS)
    )

    def write() -> None:
        content = {"budget": BUDGET, "rows": rows, "limited": limited_rows, "fronts": front_rows}
        content |= {"machine": describe_machine("cpu", 1)}
        write_result(options.out, content, command(__file__, argv), adds=True)

    for name in options.tables:
        table = TABLES[name]()
        count = max(FEWEST_BEST, round(SHARE * len(table.test_accuracy)))
        best = set(np.argsort(-table.test_accuracy)[:count].tolist())
        for strategy in table_strategies:
            if strategy == GAUSSIAN_PROCESS and table.space.cardinality() > ENUMERABLE:
                continue
            counts = [queries_to_best(STRATEGIES[strategy](table, seed), table, best) for seed in range(options.seeds)]
            low, median, high = np.quantile(counts, (0.25, 0.5, 0.75)).tolist()
            rows = [row for row in rows if (row["table"], row["strategy"]) != (name, strategy)]
            row = {"table": name, "answers": table.query_split, "best": count, "strategy": strategy, "median": median}
            rows.append({**row, "q25": low, "q75": high, "mean": float(np.mean(counts)), "seeds": options.seeds})
            print(rows[-1], flush=True)
            write()
    for device, strategy in itertools.product(options.limits, table_strategies):
        limited_rows = [row for row in limited_rows if (row["device"], row["strategy"]) != (device, strategy)]
        limited_rows.append(limited_row(strategy, device, options.seeds))
        print(limited_rows[-1], flush=True)
        write()
    for device, strategy in itertools.product(options.fronts, front_strategies):
        front_rows = [row for row in front_rows if (row["device"], row["strategy"]) != (device, strategy)]
        front_rows.append(front_row(strategy, device, options.seeds, options.after))
        print(front_rows[-1], flush=True)
        write()


if __name__ == "__main__":
    main()
