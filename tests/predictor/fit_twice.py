"""Fit small predictors twice with one seed, where torch refuses kernels whose results differ from run to run.

Run: ``CUBLAS_WORKSPACE_CONFIG=:4096:8 python -m tests.predictor.fit_twice cuda``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from torch import Tensor

from nas_core.latency.by_graph.graphsage import GraphSageModel
from nas_core.predictor import NNFormerPredictor
from nas_core.predictor.nn_former import place
from tests.latency.by_graph.toy import toy_networks
from tests.predictor.graphs import random_graphs, sizes_of_operations


def dense(device: str) -> list[Tensor]:
    graphs = random_graphs((5, 6, 7) * 4, seed=1)
    predictor = NNFormerPredictor("paper", dim=32, depth=2, epochs=3, batch_size=4, device=device)
    return list(predictor.fit(graphs, sizes_of_operations(graphs)).tensors().values())


def packed(device: str) -> list[Tensor]:
    graphs = random_graphs((70, 90, 66, 80), seed=2, features=True, density=0.04)
    predictor = NNFormerPredictor("latency", dim=32, depth=1, epochs=3, batch_size=3, device=device)
    return list(predictor.fit(graphs, sizes_of_operations(graphs) + 0.3).tensors().values())


def graphsage(device: str) -> list[Tensor]:
    model = GraphSageModel(dim=16, layers=2, epochs=3).on(device)
    return list(model.fit(toy_networks(20)).tensors().values())


def main() -> None:
    place.HOSTS = ()
    torch.use_deterministic_algorithms(True)
    kinds: tuple[Callable[[str], list[Tensor]], ...] = (dense, packed, graphsage)
    for kind in kinds:
        first, again = kind(sys.argv[1]), kind(sys.argv[1])
        if not all(torch.equal(a, b) for a, b in zip(first, again, strict=True)):
            raise SystemExit(f"{kind.__name__}: weights differ")
        print(kind.__name__)


if __name__ == "__main__":
    main()
