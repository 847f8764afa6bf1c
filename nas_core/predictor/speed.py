"""Prediction throughput, compared with the naive twin."""

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
_NAIVE = ("siblings", "bidirectional", 4)


def random_graphs(
    sizes: Sequence[int], config: NNFormerConfig, seed: int = 0, density: float = 0.4, operations: Sequence[int] = ()
) -> Graphs:
    """Draw graphs with the features of the model, and operations of these indices."""
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


def mean_of(models: Sequence[NNFormer], precision: str) -> Callable[[Graphs], NDArray[np.float64]]:
    scorers = [Scorer(model, precision) for model in models]
    return lambda graphs: np.mean([scorer(graphs) for scorer in scorers], axis=0)


def rates(
    predict: Callable[[Graphs], object], models: Sequence[NNFormer], graphs: Graphs, repeats: int
) -> dict[str, float]:
    """Return graphs per second as ``rate``, those of the naive twin on the CPU as ``naive``, and their ratio as
    ``times``.
    """
    rate = len(graphs) / _best_s(lambda: predict(graphs), repeats)
    twins = [copy.deepcopy(model).cpu().eval() for model in models]
    if not twins or (twins[0].config.attention, twins[0].config.feed_forward, twins[0].config.heads) != _NAIVE:
        return {"rate": rate}
    few = list(graphs[:NAIVE_GRAPHS])
    with torch.inference_mode():
        seconds = _best_s(lambda: [naive_prediction(twin, graph) for twin in twins for graph in few], repeats)
    naive = len(few) / seconds
    return {"rate": rate, "naive": naive, "times": rate / naive}


def _best_s(run: Callable[[], object], repeats: int) -> float:
    run()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best
