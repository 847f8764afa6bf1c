"""Naive twin of NN-Former, for tests and timings: one graph, one head, one equation at a time, without dropout."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from nas_core.graph import Graph
from nas_core.predictor.nn_former.model import Block, NNFormer


def naive_prediction(model: NNFormer, graph: Graph) -> Tensor:
    """Predict one graph, with masks A, Aᵀ, AᵀA, AAᵀ and the bidirectional feed-forward."""
    config = model.config
    x, tokens = _embedded(model, graph)
    a = torch.zeros(len(x), len(x))
    a[tokens:, tokens:] = torch.from_numpy(graph.adjacency).float()
    linked = a.clone()
    linked[:tokens], linked[:, :tokens] = 1, 1
    base = linked if config.sibling_mask == "as_released" else a
    for block in model.blocks:
        assert isinstance(block, Block)
        q, k, v = block.attention.qkv(block.norm_attention(x)).chunk(3, -1)
        heads = []
        for i, relatives in enumerate((base, base.T, base.T @ base, base @ base.T)):
            part = slice(i * x.shape[1] // 4, (i + 1) * x.shape[1] // 4)
            scores = q[:, part] @ k[:, part].T / (x.shape[1] / 4) ** 0.5
            seen = relatives + torch.eye(len(x)) + (linked - a) > 0
            heads.append(torch.softmax(scores.masked_fill(~seen, float("-inf")), -1) @ v[:, part])
        scale = 1.0 if block.scale_attention is None else block.scale_attention
        x = x + scale * block.attention.out(torch.cat(heads, -1))
        y = block.norm_feed_forward(x)
        graph_layer = block.feed_forward.graph
        assert graph_layer is not None
        ahead, back = graph_layer(y).chunk(2, -1)
        hidden = functional.relu(block.feed_forward.up(y) + torch.cat([a @ ahead, a.T @ back], -1))
        scale = 1.0 if block.scale_feed_forward is None else block.scale_feed_forward
        x = x + scale * block.feed_forward.down(hidden)
    return _read(model, model.norm(x), graph)


def _embedded(model: NNFormer, graph: Graph) -> tuple[Tensor, int]:
    """Return the rows of equation 4, tokens first, and the number of tokens."""
    config = model.config
    codes = [torch.eye(config.operations)[graph.ops.tolist()]]
    if graph.attributes is not None and config.attributes:
        codes.append(_sinusoids(graph.attributes, 5))
    if graph.shapes is not None and config.shapes:
        codes.append(_sinusoids(graph.shapes, 10))
    rows = model.embed(torch.cat(codes, -1))
    tokens = []
    if config.readout == "class_token":
        token = model.class_token[0]
        if model.static is not None:
            assert graph.static is not None
            token = token + model.static.weight @ torch.tensor(graph.static)
        tokens = [token, model.depth.weight[:, len(graph)][None]]
    x: Tensor = model.embed_norm(torch.cat([*tokens, rows]))
    return x, len(tokens)


def _read(model: NNFormer, encoded: Tensor, graph: Graph) -> Tensor:
    if model.config.readout == "class_token":
        output: Tensor = model.head(encoded[0])[0] + model.config.offset
        return output
    total = torch.zeros(model.config.dim)
    for node in encoded:
        total = total + 0.01 * (node + model.node_down(functional.relu(model.node_up(node))))
    if model.static is not None:
        assert graph.static is not None
        static = model.static(_sinusoids(graph.static[None], 5)[0])
        total = torch.cat([total, functional.relu(static)])
    return torch.log1p(torch.exp(model.head(functional.relu(model.hidden(total)))[0]))


def _sinusoids(values: NDArray[np.float32], frequencies: int) -> Tensor:
    angles = [[float(v) / 10000 ** (j / frequencies) for v in row for j in range(frequencies)] for row in values]
    rows = [[f(angle) for angle in row for f in (math.sin, math.cos)] for row in angles]
    return torch.tensor(rows)
