"""How many graphs a model predicts in a second on this machine, beside its naive reference."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from nas_core.graph import Graph, Graphs
from nas_core.predictor.nn_former.config import NNFormerConfig
from nas_core.predictor.nn_former.model import NNFormer
from nas_core.predictor.nn_former.naive import naive_prediction
from nas_core.predictor.nn_former.scorer import Scorer

NAIVE_GRAPHS = 16
"""Graphs that the naive reference is timed on: it takes them one at a time, so that its rate knows no batch."""


def random_graphs(
    sizes: Sequence[int], config: NNFormerConfig, seed: int = 0, density: float = 0.4, operations: Sequence[int] = ()
) -> Graphs:
    """Graphs with edges between any two nodes with a chance of ``density``, and the features the model reads.

    Args:
        operations: indices to draw from; default: all of the model's.
    """
    stream = np.random.default_rng(seed)
    graphs = []
    for size in sizes:
        more = {
            name: stream.integers(0, 64, shape).astype(np.float32)
            for name, shape in (
                ("attributes", (size, config.attributes)),
                ("shapes", (size, config.shapes)),
                ("static", (config.static,)),
            )
            if shape[-1]
        }
        ops = stream.choice(operations or np.arange(config.operations), size)
        graphs.append(Graph.from_adjacency(np.triu(stream.random((size, size)) < density, 1), ops, **more))
    return Graphs.of(graphs)


def has_naive(config: NNFormerConfig) -> bool:
    """Whether the naive reference is written for such a model."""
    return (config.attention, config.feed_forward, config.heads) == ("siblings", "bidirectional", 4)


def mean_of(models: Sequence[NNFormer], precision: str) -> Callable[[Graphs], NDArray[np.float64]]:
    """What predicts the mean of networks, trained or not."""
    scorers = [Scorer(model, precision) for model in models]
    return lambda graphs: np.mean([scorer(graphs) for scorer in scorers], axis=0)


def graphs_per_s(predict: Callable[[Graphs], object], graphs: Graphs, repeats: int) -> float:
    """Best of some runs over these graphs, after one that is not timed."""
    return len(graphs) / _best_s(lambda: predict(graphs), repeats)


def naive_graphs_per_s(models: Sequence[NNFormer], graphs: Graphs, repeats: int) -> float:
    """The same with the naive reference of all networks of a predictor, on the CPU and on some of the graphs."""
    some = list(graphs[:NAIVE_GRAPHS])
    plain = [copy.deepcopy(model).cpu().eval() for model in models]
    with torch.inference_mode():
        return len(some) / _best_s(lambda: [naive_prediction(m, graph) for m in plain for graph in some], repeats)


def rates(
    predict: Callable[[Graphs], object], models: Sequence[NNFormer], graphs: Graphs, repeats: int
) -> dict[str, float]:
    """Graphs per second as ``rate``; where the naive reference is written for the networks, its own as ``naive``, and
    how many ``times`` as fast."""
    rate = graphs_per_s(predict, graphs, repeats)
    if not models or not has_naive(models[0].config):
        return {"rate": rate}
    naive = naive_graphs_per_s(models, graphs, repeats)
    return {"rate": rate, "naive": naive, "times": rate / naive}


def _best_s(run: Callable[[], object], repeats: int) -> float:
    run()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best
