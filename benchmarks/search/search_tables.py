"""Queries until a search finds one of the best 0.1 % of NAS-Bench-201 and -101, where all answers are known.

A query is one cell that was not asked for before (one training). What counts as best is the mean test accuracy. On
NAS-Bench-201 a query gives the validation accuracy. On NAS-Bench-101 it gives the mean test accuracy itself, since of
most cells no validation accuracy is at hand: searches there see what they are judged by, without the noise of one run.
``nasbench101-published``, not run by default, holds the 20,001 cells whose validation accuracy is published; why that
is no substitute stands at :func:`benchmarks.parts.cells.nasbench101_published_table`.
Each strategy asks for one architecture after another until one of the best is among them, or its budget is spent.

Run: ``python -m benchmarks search_tables [--seeds 20]``. The tables are not part of this repository: NAS_EXT_DATA names
the folder that holds them.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.parts.cells import Table, nasbench101_published_table, nasbench101_table, nasbench201_table
from benchmarks.parts.record import command, write_result
from nas_core.device import pinned_threads
from nas_core.files.reading import read_json
from nas_core.graph import Graphs
from nas_core.latency.machine import describe_machine
from nas_core.predictor import NNFormerPredictor
from nas_core.predictor.ranker import RANKING
from nas_core.search import (
    MILP,
    EvolutionConfig,
    HATEvolution,
    MILPConfig,
    RandomConfig,
    RandomSearch,
    RankNAS,
    RankNASConfig,
)
from nas_core.search.strategies.ranker import RankerConfig
from nas_core.space import Architecture, SearchSpace
from nas_core.space.slots import Rows

RESULT = Path(__file__).parents[1] / "results" / "search_tables.json"
SHARE, BUDGET = 0.001, 1500
TABLES: Mapping[str, Callable[[], Table]] = {
    "nasbench201": nasbench201_table,
    "nasbench101": nasbench101_table,
    "nasbench101-published": nasbench101_published_table,
}
DEFAULT = ("nasbench201", "nasbench101")
EVOLUTION = EvolutionConfig(iterations=400, population=20, parents=10, mutations=5, crossovers=5, mutation_prob=0.3)


class Search(Protocol):
    """What is measured: the part of ask/tell that every strategy has."""

    def ask(self, n: int = 1) -> list[Architecture]: ...

    def tell(self, architecture: Architecture, metrics: Mapping[str, Any] | None) -> None: ...


class RegularizedEvolution:
    """Real et al., "Regularized Evolution for Image Classifier Architecture Search", AAAI 2019: the best of a random
    sample of the population has a child by one mutation, and the oldest member dies."""

    def __init__(self, table: Table, seed: int, population: int = 100, sample: int = 10) -> None:
        self.table, self.rng = table, np.random.default_rng(seed)
        self.size, self.sample = population, sample
        self.members: deque[tuple[Architecture, float]] = deque()

    def ask(self, n: int = 1) -> list[Architecture]:
        space = self.table.space
        while True:
            if len(self.members) < self.size:
                row = space.sample_rows(self.rng, 1)
            else:
                drawn = self.rng.choice(len(self.members), self.sample, replace=False)
                parent = min((self.members[index] for index in drawn), key=lambda member: member[1])[0]
                row = space.rows([parent])
                column = int(self.rng.integers(row.shape[1]))
                options = len(space.choices[column].options[0])
                row[0, column] = (row[0, column] + self.rng.integers(1, options)) % options
            if self.table.valid(row)[0]:
                return space.architectures(row)

    def tell(self, architecture: Architecture, metrics: Mapping[str, Any] | None) -> None:
        assert metrics is not None
        self.members.append((architecture, metrics["loss"]))
        if len(self.members) > self.size:
            self.members.popleft()


class CellRanker:
    """NN-Former on the graphs of cells."""

    def __init__(self, table: Table, seed: int) -> None:
        self.graphs: Callable[[Rows], Graphs] = table.graphs
        self.predictor = NNFormerPredictor(RANKING, seed=seed, max_nodes=12, operations=8)

    def fit(self, rows: Rows, values: NDArray[np.float64]) -> None:
        with pinned_threads(1):
            self.predictor.fit(self.graphs(rows), values)

    def score(self, rows: Rows) -> NDArray[np.float64]:
        with pinned_threads(1):
            return self.predictor.predict(self.graphs(rows))


def ranknas(table: Table, seed: int, ranker: str = "boosted", per_ranking: int = 5) -> RankNAS:
    config = RankNASConfig(
        samples=20, rankings=400, per_ranking=per_ranking, keep_genes=0, candidates=1000, generations=3, parents=50,
        children=100,
        ranker="regression" if ranker == "regression" else "boosted", trees=RankerConfig(encoding="onehot"),
    )  # fmt: skip
    if ranker != "nn-former":
        return RankNAS(table.space, table.limits, config, seed=seed)

    def make(space: SearchSpace, seed: int) -> CellRanker:
        return CellRanker(table, seed)

    return RankNAS(table.space, table.limits, config, seed=seed, ranker=make, ranker_name=ranker)


def milp(table: Table, seed: int) -> MILP:
    config = MILPConfig(evaluations=BUDGET, single_changes=12, per_round=5)
    return MILP(table.space, table.limits, config, seed=seed)


STRATEGIES: Mapping[str, Callable[[Table, int], Search]] = {
    "random": lambda t, seed: RandomSearch(t.space, t.limits, RandomConfig(evaluations=4 * BUDGET), seed=seed),
    "regularised evolution": RegularizedEvolution,
    "hat evolution": lambda t, seed: HATEvolution(t.space, t.limits, EVOLUTION, seed=seed),
    "ranknas": ranknas,
    "ranknas, regression": lambda t, seed: ranknas(t, seed, "regression"),
    "ranknas, nn-former": lambda t, seed: ranknas(t, seed, "nn-former", per_ranking=10),
    "milp": milp,
}


def queries(search: Search, table: Table, best: set[int]) -> int:
    """How many different cells were asked for until one of the best was among them; the budget if none was."""
    asked: set[int] = set()
    for _ in range(20 * BUDGET):
        found = search.ask(1)
        if not found or len(asked) >= BUDGET:
            break
        cell = int(table.cells(table.space.rows(found))[0])
        asked.add(cell)
        if cell in best:
            return len(asked)
        search.tell(found[0], {"loss": -float(table.told_accuracy[cell])})
    return BUDGET


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(DEFAULT))
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--out", type=Path, default=RESULT, help="rows of other tables and strategies are kept")
    options = parser.parse_args(argv)
    rows = read_json(options.out)["rows"] if options.out.exists() else []
    for name in options.tables:
        table = TABLES[name]()
        count = round(SHARE * len(table.test_accuracy))
        best = set(np.argsort(-table.test_accuracy)[:count].tolist())
        for strategy in options.strategies:
            found = [queries(STRATEGIES[strategy](table, seed), table, best) for seed in range(options.seeds)]
            low, median, high = np.quantile(found, (0.25, 0.5, 0.75)).tolist()
            rows = [row for row in rows if (row["table"], row["strategy"]) != (name, strategy)]
            row = {"table": name, "answers": table.answers, "best": count, "strategy": strategy, "median": median}
            rows.append({**row, "q25": low, "q75": high, "mean": float(np.mean(found)), "seeds": options.seeds})
            print(rows[-1], flush=True)
            content = {"budget": BUDGET, "rows": rows, "machine": describe_machine("cpu", 1)}
            write_result(options.out, content, command(__file__, argv), adds=True)


if __name__ == "__main__":
    main()
