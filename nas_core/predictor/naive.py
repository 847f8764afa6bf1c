"""NN-Former as the paper writes it: one graph, one head, one equation at a time, in float32 and without tricks.

The reference that the fast model is tested and timed against; dropout is left out.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from nas_core.graph import Graph, Graphs
from nas_core.predictor.batch import Batch
from nas_core.predictor.blocks import Block
from nas_core.predictor.model import NNFormer

__all__ = ["naive_prediction"]


def naive_prediction(model: NNFormer, graph: Graph) -> Tensor:
    """One prediction, a scalar; masks A, Aᵀ, AᵀA, AAᵀ and the bidirectional feed-forward."""
    config, batch = model.config, Batch.of(Graphs.of([graph]))
    x = model.embedded(batch)[0]
    tokens = len(x) - len(graph)
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
    encoded = model.norm(x)
    return model.read(encoded[:1] if tokens else encoded[None], batch)[0]
