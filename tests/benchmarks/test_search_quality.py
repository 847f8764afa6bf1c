"""The comparison of searches: its rows and its strategies."""

from __future__ import annotations

import re

from benchmarks.search.search_quality import EVOLUTION, STRATEGIES, summary
from nas_core.search import RankNAS
from tests.contracts.strategy import SPACE, limit


def test_rows_have_evaluations_to_the_loss_of_evolution() -> None:
    trajectories = {EVOLUTION: [[5.0] * 99 + [4.0] * 201] * 2, "ranknas": [[5.0] * 49 + [4.003] * 51, [4.0] * 100]}
    rows = summary(trajectories, {"ranknas": [["a"], ["b"]]})
    evolution, ranknas = rows
    assert evolution["evaluations_to_evolutions_final_loss"] == [100, 100]
    assert ranknas["evaluations_to_evolutions_final_loss"] == [None, 1]
    assert ranknas["evaluations_to_within_0.1_percent"] == [50, 1]
    assert ranknas["free_genes_of_the_last_ranking"] == [["a"], ["b"]]
    assert ranknas["mean_loss_after"]["100"] == 4.0015 and "200" not in ranknas["mean_loss_after"]


def test_ranknas_variants_differ_in_kept_genes() -> None:
    strategies = {name: make(SPACE, [limit(3000.0)], 0) for name, make in STRATEGIES.items()}
    ranked = {name: strategy for name, strategy in strategies.items() if isinstance(strategy, RankNAS)}
    assert [strategy.config.keep_genes for strategy in ranked.values()] == [5, 0, 0]
    assert all(re.match("ranknas, ", name) for name in ranked)
