"""NN-Former as in the authors' code, in eager float32: the reference of tests and timings.

Each layer builds its masks; attention is written as scores, ``masked_fill`` and softmax; the feed-forward network
projects before it sums; the last layer computes every token. The accuracy model takes batches of graphs of equal size,
the latency model single graphs. Codes that the authors' code reads from files are precomputed. Weights are those of an
:class:`NNFormer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from nas_core.graph import Graphs
from nas_core.predictor import NNFormer
from nas_core.predictor.losses import ranking_loss, relative_loss
from nas_core.predictor.nn_former.batch import Batch
from nas_core.predictor.nn_former.model import sinusoids


@dataclass(frozen=True)
class Codes:
    """Codes of B graphs of equal size."""

    nodes: Tensor
    """``(B, N, F)`` codes of operations, attributes and shapes"""
    graph_codes: Tensor
    """``(B, F)`` code of the number of nodes and static features (accuracy), or of static features (latency)"""
    adjacency: Tensor
    """``(B, N, N)`` float"""

    def take(self, rows: Tensor) -> Codes:
        return Codes(self.nodes[rows], self.graph_codes[rows], self.adjacency[rows])


def codes_of(model: NNFormer, graphs: Graphs) -> list[Codes]:
    """Return the codes of all graphs, of equal sizes, for the accuracy model; of each graph for the latency model."""
    config = model.config
    codes = []
    for part in [graphs] if config.readout == "class_token" else [graphs[i : i + 1] for i in range(len(graphs))]:
        batch = Batch.of(part, device=next(model.parameters()).device)
        nodes = [functional.one_hot(batch.ops, config.operations).float()]
        if batch.attributes is not None and batch.shapes is not None:
            nodes += [sinusoids(batch.attributes, 5).flatten(2), sinusoids(batch.shapes, 10).flatten(2)]
        static = torch.zeros(len(part), 0) if batch.static is None else batch.static
        if config.readout == "class_token":
            sizes = functional.one_hot(batch.sizes, config.max_nodes).float()
            static_codes = torch.cat([sizes, static.to(sizes)], 1)
        else:
            static_codes = sinusoids(static, 5).flatten(1)
        codes.append(Codes(torch.cat(nodes, -1), static_codes, batch.adjacency.float()))
    return codes


def plain_forward(model: NNFormer, codes: Sequence[Codes], training: bool = False) -> Tensor:
    if model.config.readout == "class_token":
        return torch.cat([_accuracy(model, part, training) for part in codes])
    p = model.config.dropout if training else 0.0
    sums = torch.cat([_latency_sums(model, part, p) for part in codes])
    assert model.static is not None
    static = functional.dropout(model.static(torch.cat([part.graph_codes for part in codes])), p)
    hidden = functional.relu(model.hidden(torch.cat([sums, functional.relu(static)], -1)))
    return functional.softplus(model.head(functional.dropout(hidden, p)).squeeze(-1))


def _accuracy(model: NNFormer, codes: Codes, training: bool) -> Tensor:
    p = model.config.dropout if training else 0.0
    sizes, static = codes.graph_codes.tensor_split([model.config.max_nodes], 1)
    depth, token = model.depth(sizes).unsqueeze(1), model.class_token.expand(len(sizes), -1, -1)
    if model.static is not None:
        token = token + model.static(static).unsqueeze(1)
    x = model.embed_norm(torch.cat([token, depth, model.embed(codes.nodes)], 1))
    graph = functional.pad(codes.adjacency, (2, 0, 2, 0))
    linked = graph.clone()
    linked[:, :2], linked[:, :, :2] = 1, 1
    base = linked if model.config.sibling_mask == "as_released" else graph
    for block in model.blocks:
        x = x + _attention(block, x, base, p, linked - graph)
        x = x + _feed_forward(block, x, graph, p)
    return model.head(model.norm(x)[:, 0]).squeeze(-1) + model.config.offset


def _latency_sums(model: NNFormer, codes: Codes, p: float) -> Tensor:
    x = model.embed(codes.nodes)
    for block in model.blocks:
        x = x + block.scale_attention * _attention(block, x, codes.adjacency, p)
        x = x + block.scale_feed_forward * _feed_forward(block, x, codes.adjacency, p)
    z = model.norm(x)
    hidden = functional.dropout(functional.relu(model.node_up(z)), p)
    return (0.01 * (z + functional.dropout(model.node_down(hidden), p))).sum(1)


def _attention(block: nn.Module, x: Tensor, graph: Tensor, p: float, tokens: Tensor | float = 0) -> Tensor:
    batch, length, dim = x.shape
    attention = block.attention
    relatives = torch.stack([graph, graph.mT, graph.mT @ graph, graph @ graph.mT], 1)
    links = torch.eye(length, device=x.device) + tokens
    mask = relatives + links[..., None, :, :] > 0
    qkv = attention.qkv(block.norm_attention(x)).reshape(batch, length, 3, attention.heads, dim // attention.heads)
    q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
    scores = (q @ k.mT) * (dim // attention.heads) ** -0.5
    weights = functional.dropout(scores.masked_fill(~mask, float("-inf")).softmax(-1), p)
    mixed = (weights @ v).transpose(1, 2).reshape(batch, length, dim)
    return functional.dropout(attention.out(mixed), p)


def _feed_forward(block: nn.Module, x: Tensor, graph: Tensor, p: float) -> Tensor:
    ffn, y = block.feed_forward, block.norm_feed_forward(x)
    successors, predecessors = ffn.graph(y).chunk(2, -1)
    hidden = ffn.up(y) + torch.cat([graph @ successors, graph.mT @ predecessors], -1)
    return functional.dropout(ffn.down(functional.dropout(functional.relu(hidden), p)), p)


class PlainTraining:
    """Updates as in the authors' code: AdamW, and averaged weights for the accuracy model.

    Accuracy: each graph twice in one pass, with squared error, ranking and consistency losses. Latency: two passes,
    with relative error and consistency losses, and gradient clipping.
    """

    def __init__(self, model: NNFormer) -> None:
        self.model = model
        self.averages = model.config.readout == "class_token"
        matrices = [p for p in model.parameters() if p.ndim > 1 or not self.averages]
        vectors = [p for p in model.parameters() if p.ndim <= 1 and self.averages]
        groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups if vectors else groups[:1], lr=1e-5, foreach=True)
        self.averaged = [p.detach().clone() for p in model.parameters()] if self.averages else []

    def update(self, codes: Sequence[Codes], targets: Tensor) -> float:
        count = len(targets)
        if self.averages:
            doubled = [part.take(torch.arange(count, device=targets.device).repeat(2)) for part in codes]
            predicted, truth = plain_forward(self.model, doubled, True), targets.repeat(2)
            loss = (predicted - truth).square().mean()
            loss = loss + 0.2 * ranking_loss(predicted, truth, torch.randperm(2 * count, device=targets.device))
            loss = loss + (predicted[:count] - predicted[count:]).abs().mean()
        else:
            first, second = (plain_forward(self.model, codes, True) for _ in range(2))
            loss = relative_loss(first, targets) + relative_loss(second, targets)
            loss = loss + 0.01 * (first - second).abs().mean()
        self.optimizer.zero_grad()
        loss.backward()
        if not self.averages:
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()
        with torch.no_grad():
            for average, parameter in zip(self.averaged, self.model.parameters(), strict=self.averages):
                average.mul_(0.99).add_(parameter, alpha=0.01)
        return loss.item()
