"""GraphSAGE on whole networks: mean over neighbours, sum over nodes, static features beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional

from nas_core.checks import Range, check_fields
from nas_core.errors import unknown_choice
from nas_core.graph import Graphs
from nas_core.graph.onnx.operators import KINDS
from nas_core.predictor.nn_former.model import one_hot, sinusoids, standardised
from nas_core.predictor.nn_former.packed import PackedBatch, Pairs, numbered
from nas_core.predictor.precision import CHOICES

__all__ = ["SageConfig", "SageNet", "neighbours_of"]

_RANGES = {
    **{name: Range(1) for name in ("dim", "layers", "epochs", "batch_size")},
    "dropout": Range(0, 1, without=(1,)),
    "lr": Range(0, without=(0,)),
    "weight_decay": Range(0),
    "clip": Range(0, without=(0,)),
}


@dataclass(frozen=True)
class SageConfig:
    """Settings of the network and of its training."""

    dim: int = 128
    """Channels."""
    layers: int = 3
    """Rounds of aggregation."""
    dropout: float = 0.05
    """Rate for the readout's hidden channels."""
    epochs: int = 60
    """Passes over the networks."""
    batch_size: int = 16
    """Networks per step."""
    lr: float = 2e-3
    """Peak learning rate of AdamW, after a tenth of the steps; it falls to 0 as a cosine."""
    weight_decay: float = 1e-3
    """Decay of all weights."""
    clip: float = 1.0
    """Largest norm of the gradient."""

    precision: str = "fp32"
    """fp32, tf32, bf16 or fp16 for matrix products; auto: bf16 where the device computes in it, else fp32."""

    def __post_init__(self) -> None:
        check_fields(self, "GraphSAGE", _RANGES)
        if self.precision not in CHOICES:
            raise unknown_choice("precision of GraphSAGE", self.precision, CHOICES)


def neighbours_of(graphs: Graphs) -> csr_array:
    """Edges in both directions over the nodes of all graphs, which stand in one row."""
    edges = numbered(graphs)
    both = np.concatenate([edges, edges[:, ::-1]])
    return csr_array((np.ones(len(both), np.int32), (both[:, 0], both[:, 1])), shape=(len(graphs.ops),) * 2)


class SageLayer(nn.Module):
    """A node and the mean of its parents and children, each projected, added, and scaled to length 1."""

    def __init__(self, inputs: int, dim: int) -> None:
        super().__init__()
        self.itself, self.around = nn.Linear(inputs, dim), nn.Linear(inputs, dim, bias=False)

    def forward(self, x: Tensor, neighbours: Pairs, degree: Tensor) -> Tensor:
        """``(T, C)``, edges in both directions, their number at each node ``(T, 1)`` -> ``(T, C)``."""
        mean = neighbours.sum(self.around(x)) / degree
        return functional.relu(functional.normalize(self.itself(x) + mean, dim=-1))


class SageNet(nn.Module):
    """NNLP's structure (Liu et al., ICPP 2022) on the node features of NN-Former, 192 numbers each.

    The static features are standardised logarithms. The output is log ms, standardised as well.
    """

    def __init__(self, config: SageConfig, attributes: int) -> None:
        super().__init__()
        self.config, dim = config, config.dim
        self.embed = nn.Linear(KINDS + 10 * attributes + 4 * 20, dim)
        self.layers = nn.ModuleList(SageLayer(dim, dim) for _ in range(config.layers))
        self.static = nn.Linear(4, dim)
        self.hidden, self.head = nn.Linear(2 * dim, dim), nn.Linear(dim, 1)
        self.scale: Tensor
        self.register_buffer("scale", torch.tensor([[0.0, 1.0]] * 5))
        """``(5, 2)`` mean and deviation of the four static features and of log ms."""

    def forward(self, batch: PackedBatch, neighbours: Pairs, static: Tensor) -> Tensor:
        """log ms ``(B,)`` of graphs whose edges in both directions, and logarithms of static features ``(B, 4)``, stand
        beside."""
        assert batch.attributes is not None and batch.shapes is not None
        codes = [sinusoids(batch.attributes[0], 5).flatten(1), sinusoids(batch.shapes[0], 10).flatten(1)]
        x = functional.relu(self.embed(torch.cat([one_hot(batch.ops[0], KINDS), *codes], -1)))
        degree = neighbours.row_sums(torch.ones_like(neighbours.columns, dtype=x.dtype)).clamp(min=1).unsqueeze(-1)
        for layer in self.layers:
            x = layer(x, neighbours, degree)
        summed = batch.total(x[None].float())
        beside = functional.relu(self.static(standardised(static, self.scale[:-1])))
        hidden = functional.relu(self.hidden(torch.cat([torch.log1p(summed), beside], -1)))
        hidden = functional.dropout(hidden, self.config.dropout, self.training)
        mean, deviation = self.scale[-1]
        output: Tensor = self.head(hidden).squeeze(-1).float() * deviation + mean
        return output
