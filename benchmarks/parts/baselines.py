"""Baselines for NN-Former."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from nas_core.graph import Graphs
from nas_core.predictor.nn_former.batch import Batch
from nas_core.predictor.statistics.features import graph_statistics

Array = NDArray[np.float64]


def one_hot_codes(graphs: Graphs, operations: int, nodes: int) -> Array:
    """Return one-hot operations of each node ``(G, nodes * operations)``; 0 for missing nodes."""
    dense = graphs.dense(width=nodes)
    present = np.arange(nodes) < dense.sizes[:, None]
    kinds: Array = np.eye(operations)[dense.ops] * present[..., None]
    return kinds.reshape(len(graphs), -1)


class LightGBM:
    """LightGBM on one-hot operations and edges (``one_hot``) or on graph statistics."""

    def __init__(self, operations: int, nodes: int, one_hot: bool, seed: int) -> None:
        self.operations, self.nodes, self.one_hot, self.seed = operations, nodes, one_hot, seed
        self.model: Any = None

    def features(self, graphs: Graphs) -> Array:
        if not self.one_hot:
            return graph_statistics(graphs, self.operations)
        upper = np.triu_indices(self.nodes, 1)
        kinds = one_hot_codes(graphs, self.operations, self.nodes)
        return np.concatenate([kinds, graphs.dense(width=self.nodes).adjacency[:, *upper]], 1)

    def fit(self, graphs: Graphs, targets: Array) -> LightGBM:
        import lightgbm

        self.model = lightgbm.LGBMRegressor(
            objective="l1",  # robust to failed networks
            random_state=self.seed,
            n_jobs=1,
            verbose=-1,
        )
        self.model.fit(self.features(graphs), targets)
        return self

    def predict(self, graphs: Graphs) -> Array:
        parts = [self.features(graphs[i : i + 50_000]) for i in range(0, len(graphs), 50_000)]
        return np.concatenate([self.model.booster_.predict(part) for part in parts])


class Ridge:
    """Ridge regression on one-hot operations of each node, for chains.

    The penalty is selected by leave-one-out error (closed form, Golub et al. 1979).
    """

    PENALTIES = np.logspace(-2, 3, 11)

    def __init__(self, operations: int, nodes: int) -> None:
        self.operations, self.nodes = operations, nodes
        self.weights, self.intercept = np.zeros(0), 0.0

    def fit(self, graphs: Graphs, targets: Array) -> Ridge:
        codes = one_hot_codes(graphs, self.operations, self.nodes)
        code_mean, mean = codes.mean(0), float(targets.mean())
        left, values, right = np.linalg.svd(codes - code_mean, full_matrices=False)
        projected, best = left.T @ (targets - mean), np.inf
        for penalty in self.PENALTIES:
            shrinkage = values**2 / (values**2 + penalty)
            leverage = (left**2) @ shrinkage + 1 / len(targets)
            error = np.mean(((targets - mean - left @ (shrinkage * projected)) / np.maximum(1 - leverage, 1e-9)) ** 2)
            if error < best:
                best, self.weights = error, right.T @ (values / (values**2 + penalty) * projected)
        self.intercept = mean - float(code_mean @ self.weights)
        return self

    def predict(self, graphs: Graphs) -> Array:
        return np.asarray(one_hot_codes(graphs, self.operations, self.nodes) @ self.weights + self.intercept)


class GCN(nn.Module):
    """Graph convolution predictor (Neural Predictor, Wen et al. 2020)."""

    def __init__(self, operations: int, seed: int, width: int = 144, layers: int = 4, epochs: int = 300) -> None:
        super().__init__()
        torch.manual_seed(seed)
        widths = [operations] + [width] * layers
        pairs = list(pairwise(widths))
        self.out_linears = nn.ModuleList(nn.Linear(a, b) for a, b in pairs)
        self.in_linears = nn.ModuleList(nn.Linear(a, b) for a, b in pairs)
        self.hidden, self.head = nn.Linear(width, 128), nn.Linear(128, 1)
        self.operations, self.seed, self.epochs = operations, seed, epochs
        self.mean, self.deviation = 0.0, 1.0

    def forward(self, batch: Batch) -> Tensor:
        x = functional.one_hot(batch.ops, self.operations).float() * batch.present[..., None]
        identity = torch.eye(x.shape[1])
        out_adjacency, in_adjacency = batch.adjacency.float() + identity, batch.adjacency.mT.float() + identity
        out_adjacency, in_adjacency = (
            out_adjacency / out_adjacency.sum(-1, keepdim=True),
            in_adjacency / in_adjacency.sum(-1, keepdim=True),
        )
        for out_linear, in_linear in zip(self.out_linears, self.in_linears, strict=True):
            x = 0.5 * (functional.relu(out_adjacency @ out_linear(x)) + functional.relu(in_adjacency @ in_linear(x)))
        pooled = (x * batch.present[..., None]).sum(1) / batch.sizes[:, None]
        return self.head(functional.relu(self.hidden(pooled))).squeeze(-1)

    def fit(self, graphs: Graphs, targets: Array) -> GCN:
        self.mean, self.deviation = float(targets.mean()), float(targets.std())
        standard_targets = torch.from_numpy((targets - self.mean) / self.deviation).float()
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-3, weight_decay=1e-4)
        size, rng = 16, np.random.default_rng(self.seed)
        steps = self.epochs * -(-len(graphs) // size)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        batch = Batch.of(graphs)
        for _ in range(self.epochs):
            order = torch.from_numpy(rng.permutation(len(graphs)))
            for rows in torch.split(order, size):
                loss = functional.mse_loss(self(batch.take(rows)), standard_targets[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
        return self

    @torch.no_grad()
    def predict(self, graphs: Graphs) -> Array:
        parts = [self(Batch.of(graphs[i : i + 4000])).double().numpy() for i in range(0, len(graphs), 4000)]
        return self.mean + self.deviation * np.concatenate(parts)
