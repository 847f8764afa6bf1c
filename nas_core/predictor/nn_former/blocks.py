"""The two mixers of a block: adjacency-sibling attention and the bidirectional graph isomorphism feed-forward."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from nas_core.predictor.nn_former.batch import Topology
from nas_core.predictor.nn_former.config import NNFormerConfig
from nas_core.predictor.nn_former.dropout import dropout, relu_dropout
from nas_core.predictor.nn_former.packed import PackedTopology

__all__ = ["Attention", "Block", "FeedForward"]


class Attention(nn.Module):
    """ASMA, equations 6 to 10: each quarter of the heads sees one kind of relatives."""

    def __init__(self, config: NNFormerConfig) -> None:
        super().__init__()
        self.heads, self.dropout = config.heads, config.dropout
        self.qkv = nn.Linear(config.dim, 3 * config.dim, bias=config.bias)
        self.out = nn.Linear(config.dim, config.dim, bias=config.bias)

    def forward(self, x: Tensor, topology: Topology | PackedTopology) -> Tensor:
        """``(B, L, C)`` -> ``(B, L, C)``."""
        mixed = topology.attend(self.qkv(x), self.heads, self.dropout if self.training else 0.0)
        return dropout(self.out(mixed), self.dropout, self.training)


class FeedForward(nn.Module):
    """BGIFFN, equations 11 to 13, and the designs of Tables 6, 9 and 10.

    Sums are taken before the projection, which is narrower; a bias of the projection is therefore multiplied by the
    number of relatives, as it is when projecting first.
    """

    def __init__(self, config: NNFormerConfig) -> None:
        super().__init__()
        hidden = config.ratio * config.dim
        self.kind, self.dropout, self.has_bias = config.feed_forward, config.dropout, config.bias
        self.up = nn.Linear(config.dim, hidden, bias=config.bias)
        self.graph = nn.Linear(config.dim, hidden, bias=config.bias) if self.kind != "vanilla" else None
        self.score = nn.Linear(hidden, 2, bias=False) if self.kind == "gat" else None
        self.down = nn.Linear(hidden, config.dim, bias=config.bias)

    def forward(self, x: Tensor, topology: Topology | PackedTopology) -> Tensor:
        """``(B, L, C)`` -> ``(B, L, C)``."""
        hidden = self.up(x)
        if self.graph is not None:
            relatives = self._relatives(x, self.graph, topology)
            hidden = hidden * relatives if self.kind == "multiply" else hidden + relatives
        hidden = relu_dropout(hidden, self.dropout, self.training)
        return dropout(self.down(hidden), self.dropout, self.training)

    def _relatives(self, x: Tensor, graph: nn.Linear, topology: Topology | PackedTopology) -> Tensor:
        if self.score is not None:
            assert isinstance(topology, Topology) and topology.neighbours is not None
            projected = graph(x)
            to, of = self.score(projected).unsqueeze(1).unbind(-1)  # each (B, 1, L)
            scores = functional.leaky_relu(to.mT + of, 0.2).masked_fill(~topology.neighbours, float("-inf"))
            attended: Tensor = torch.softmax(scores, -1) @ projected
            return attended
        sums = topology.sums(x)
        size = graph.out_features // len(sums)
        weights = torch.split(graph.weight, size)
        joined = torch.cat([functional.linear(s, w) for s, w in zip(sums, weights, strict=True)], -1)
        if not self.has_bias:
            return joined
        ones = torch.ones_like(x[..., :1])
        degrees = torch.cat([degree.expand(*x.shape[:-1], size) for degree in topology.sums(ones)], -1)
        return joined + degrees * graph.bias


class Block(nn.Module):
    """Equations 2 and 3: both mixers with layer norm before and the input added after."""

    def __init__(self, config: NNFormerConfig) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(config.dim)
        self.attention = Attention(config)
        self.norm_feed_forward = nn.LayerNorm(config.dim)
        self.feed_forward = FeedForward(config)
        scaled = config.layer_scale > 0
        self.scale_attention = nn.Parameter(torch.full((config.dim,), config.layer_scale)) if scaled else None
        self.scale_feed_forward = nn.Parameter(torch.full((config.dim,), config.layer_scale)) if scaled else None

    def forward(self, x: Tensor, topology: Topology | PackedTopology) -> Tensor:
        """``(B, L, C)`` -> ``(B, L, C)``."""
        mixed = self.attention(self.norm_attention(x), topology)
        x = x + (mixed if self.scale_attention is None else self.scale_attention * mixed)
        mixed = self.feed_forward(self.norm_feed_forward(x), topology)
        x = x + (mixed if self.scale_feed_forward is None else self.scale_feed_forward * mixed)
        return x
