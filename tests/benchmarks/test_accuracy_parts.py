"""Benchmark of accuracy predictors: features, splits, metrics and rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.parts.accuracy import graf, methods
from benchmarks.parts.accuracy.graf import Forest, Graf, ProcessesAndTrees
from benchmarks.parts.accuracy.metrics import interval_coverage, predict_components, predict_with_std, search_gain
from benchmarks.parts.accuracy.rows import summary
from benchmarks.parts.accuracy.splits import split
from benchmarks.parts.accuracy.tables import BENCHMARKS, AccuracyBenchmark, Holdout, Table
from benchmarks.parts.baselines import Ridge
from benchmarks.parts.published import chains
from benchmarks.predictor import predictor_quality
from nas_core.files.reading import read_json
from nas_core.graph import Graph, Graphs
from nas_core.graph.nasbench201 import nasbench201_graphs
from nas_core.predictor import StatisticsPredictor, kendall_tau

KINDS = 4
CHAINS = chains(np.random.default_rng(0).integers(0, KINDS, (120, 5)))
VALUES = CHAINS.ops.reshape(120, 5) @ np.array([0.1, 0.2, 0.05, 0.3, 0.1])
CELLS = nasbench201_graphs(np.random.default_rng(1).integers(0, 5, (90, 6)))
GOOD = np.array([0.6 + 0.03 * (cell.ops == 2).sum() + 0.01 * (cell.ops == 1).sum() for cell in CELLS])


def benchmark(**changes: Any) -> AccuracyBenchmark:
    rows = np.arange(20, 120)
    settings = {"files": (), "load": lambda: Table(CHAINS, rows, VALUES[rows] + 0.01, VALUES), "sizes": (10,)}
    return AccuracyBenchmark(**{**settings, "graph_limits": (KINDS, 5), **changes})


def test_features_of_a_graph_by_hand() -> None:
    # 0 input, 1 and 2 operations, 3 output: input > 1 > 2 > output, input > 2 > output
    graph = Graph(np.array([0, 1, 2, 2, 3]), [(0, 1), (1, 2), (2, 4), (0, 3), (3, 4)])
    graphs = Graphs.of([graph])
    result = Graf(graphs, KINDS)(graphs)[0]
    counts, rest = result[:4], result[4:].reshape(6, 3)  # sets {1}, {2}, {1, 2}
    assert counts.tolist() == [1, 1, 2, 1]
    shortest, most, first, last, into, out_of = rest.tolist()
    assert shortest == [5, 2, 2] and most == [1, 1, 2]  # no way by 1 alone: as long as there are nodes
    assert first == [1, 1, 2] and last == [0, 2, 2]
    assert into == pytest.approx([1 / 5, 2 / 5, 3 / 5]) and out_of == pytest.approx([1 / 5, 2 / 5, 3 / 5])


def test_features_do_not_depend_on_the_other_graphs_of_a_batch() -> None:
    features = Graf(CELLS, 7)
    full = features(CELLS)
    assert full.shape == (90, 7 + 6 * 15)
    assert all(np.array_equal(features(CELLS[i : i + 1])[0], full[i]) for i in range(0, 90, 7))


@pytest.mark.parametrize("method", ["graf forest", "graf processes and trees"])
def test_predictors_from_graf_learn(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graf, "MEMBERS", 1)
    if method == "graf forest":
        pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    predictor = methods.make_predictor(method, (7, 8), 3)
    assert isinstance(predictor, Forest | ProcessesAndTrees)
    predicted = predictor.fit(CELLS[:60], GOOD[:60]).predict(CELLS[60:])
    assert kendall_tau(predicted, GOOD[60:]) > 0.6


def test_ridge_fits_additive_targets() -> None:
    ridge = Ridge(KINDS, 5).fit(CHAINS[:60], VALUES[:60])
    assert kendall_tau(ridge.predict(CHAINS[60:]), VALUES[60:]) > 0.97


def test_split_evaluates_all_or_held_out_networks() -> None:
    full = split(benchmark(evaluates_all=True), 30, 0, None, False)
    assert len(full.eval_graphs) == 120 and full.held_out is not None and len(full.held_out.graphs) == 70
    some, other = (split(benchmark(evaluates_all=True), 30, draw, 7, False) for draw in (0, 1))
    assert len(some.eval_accuracies) == 7 and (some.eval_accuracies == other.eval_accuracies).all()
    rest = split(benchmark(), 30, 0, None, False)
    assert np.array_equal(rest.targets, full.targets) and len(rest.eval_graphs) == 70
    assert rest.held_out is not None and np.allclose(rest.held_out.observed, rest.eval_accuracies + 0.01)
    bound = split(benchmark(evaluates_all=True), 30, 0, None, False, test_labels=True)
    assert np.allclose(bound.targets, full.targets - 0.01), "test labels of the same networks"
    checked = split(benchmark(), 30, 0, None, True)
    assert np.allclose(checked.eval_accuracies, rest.eval_accuracies + 0.01)
    with pytest.raises(ValueError, match="number of training networks is 99; expected 2 to 98"):
        split(benchmark(), 99, 0, None, False)


def test_holdout_does_not_use_its_unused_cells() -> None:
    divided = benchmark(holdout=Holdout(cells=80, half=40, unused=5))
    first, more = (split(divided, size, 0, None, False) for size in (4, 40))
    assert len(first.eval_graphs) == 35 and np.array_equal(first.eval_accuracies, more.eval_accuracies)
    learned = {graph.ops.tobytes() for graph in more.graphs}
    assert sum(graph.ops.tobytes() in learned for graph in more.eval_graphs) < 35
    assert np.array_equal(first.targets, more.targets[:4])


def test_search_gain() -> None:
    true = np.arange(200.0)
    assert search_gain(true, true) == {"best_of_50": 1, "tau_top_tenth": 1.0}
    assert search_gain(-true, true)["best_of_50"] == 151 and search_gain(-true, true)["tau_top_tenth"] == -1.0
    assert search_gain(true, true, higher_is_better=False) == {"best_of_50": 1, "tau_top_tenth": 1.0}
    late = true.copy()
    late[-3:] = -1  # the three best are not selected
    assert search_gain(late, true)["best_of_50"] == 4


def test_interval_coverage() -> None:
    values = np.array([0.0, 0.5, 1.5, 3.0])
    assert interval_coverage(np.zeros(4), np.ones(4), values) == {"within_1": 0.5, "within_2": 0.75}


def test_components_of_a_mixture() -> None:
    mixture = StatisticsPredictor(unseen="ignore", processes=1, trees=1).fit(CELLS[:40], GOOD[:40])
    parts = predict_components(mixture, CELLS[40:])
    assert list(parts) == ["processes", "trees"]
    predicted, spread = predict_with_std(mixture, CELLS[40:])
    assert spread is not None and all(row.shape == predicted.shape for row in parts.values())
    ridge = Ridge(KINDS, 5).fit(CHAINS, VALUES)
    assert not predict_components(ridge, CHAINS) and predict_with_std(ridge, CHAINS)[1] is None


def record(**changes: Any) -> dict[str, Any]:
    settings = {"benchmark": "nasbench101", "size": 100, "draw": 0, "method": "gcn", "on": "test", "judged": "all"}
    results = {"tau": 0.5, "fit_cpu_s": 1.0, "cells": 9, "best_of_50": 3, "tau_top_tenth": 0.2, "tau_as_told": 0.4}
    return {**settings, **results, **changes}


def test_rows_have_means_and_the_median_rank() -> None:
    parts = [{"whole": 0.5, "trees": 0.4}, {"whole": 0.7, "trees": 0.6}]
    records = [
        record(within_1=0.6 + 0.2 * i, parts=parts[i], draw=i, tau=0.5 + i / 5, best_of_50=1 + i) for i in (0, 1)
    ]
    (row,) = summary(records)
    assert (row["tau"], row["draws"], row["best_of_50"], row["best_of_50_each"]) == (0.6, 2, 1.5, [1, 2])
    assert row["within_1"] == 0.7 and row["parts"] == {"whole": 0.6, "trees": 0.5} and row["paper"] == 0.709
    old = {name: value for name, value in record(draw=2).items() if name not in ("best_of_50", "tau_as_told")}
    (row,) = summary([record(), old])
    assert "best_of_50" not in row and "tau_as_told" not in row and row["tau_top_tenth"] == 0.2


def test_predictor_quality_writes_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BENCHMARKS, "fbnet_pixel3", benchmark(higher_is_better=False))
    out, work = tmp_path / "o.json", tmp_path / "w.jsonl"
    sizes = ["--benchmark", "fbnet_pixel3", "--sizes", "40", "--draws", "0", "1", "--jobs", "0"]
    arguments = [*sizes, "--methods", "ridge", "additive", "--work", str(work), "--out", str(out)]
    predictor_quality.main(arguments)
    rows = {row["method"]: row for row in read_json(out)["rows"]}
    assert rows.keys() == {"ridge", "additive"} and rows["ridge"]["draws"] == 2
    assert rows["ridge"]["tau"] > 0.9 and rows["ridge"]["tau_as_told"] > 0.9 and rows["ridge"]["cells"] == 60
    assert "within_1" not in rows["ridge"] and 0 <= rows["additive"]["within_1"] <= 1
    assert rows["ridge"]["best_of_50_each"] == [1, 1]
