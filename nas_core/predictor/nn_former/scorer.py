"""Fast scoring: frozen weights in the device's fast precision, and each different graph once. Small graphs: those of
one size together, chunks that stay in cache, and in the last block the class token alone. Large graphs of all sizes are
packed together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from nas_core.graph import Graphs
from nas_core.predictor.nn_former.attend import short_softmax
from nas_core.predictor.nn_former.batch import TOKENS, Batch, Topology
from nas_core.predictor.nn_former.blocks import Block
from nas_core.predictor.nn_former.cuda_graph import StaticForward
from nas_core.predictor.nn_former.model import NNFormer
from nas_core.predictor.nn_former.packed import PACKED_FROM, PackedBatch, packable
from nas_core.predictor.nn_former.packed_scorer import FrozenPacked
from nas_core.predictor.training.trainer import autocast, fast_dtype

__all__ = ["Scorer", "score"]

CHUNK_TOKENS = 5000
"""Positions computed at once by the fast path; the activations of so many fit a second-level cache."""
GRAPHED = 512
"""Graphs in one recorded forward pass of a CUDA device."""
CHUNK_NODES = 1500
"""Nodes computed at once by the general path, and where graphs are packed."""


def score(model: NNFormer, graphs: Graphs, precision: str = "auto") -> NDArray[np.float64]:
    """Predictions ``(G,)``, as :class:`Scorer` gives them."""
    return Scorer(model, precision)(graphs)


class Scorer:
    """A trained model ready to score; keep it where graphs come one by one, since its making takes as long as some
    hundred of them.

    Args:
        model: with the weights it has now; later changes are not seen.
        precision: of matrix products: bf16, fp32, or auto, the device's fast one.
    """

    @torch.inference_mode()
    def __init__(self, model: NNFormer, precision: str = "auto") -> None:
        self.model, self.precision = model.eval(), precision
        self.frozen = _Frozen(model, precision) if _Frozen.supports(model) else None
        packs = packable(model.config) and FrozenPacked.supports(model)
        self.packed = FrozenPacked(model, _dtype(precision, next(model.parameters()).device)) if packs else None

    @torch.inference_mode()
    def __call__(self, graphs: Graphs) -> NDArray[np.float64]:
        """Predictions ``(G,)``; equal to the model's own within the precision.

        Raises:
            GraphError: a graph the model was not built for.
        """
        distinct, inverse = graphs.distinct()
        scores = np.zeros(len(distinct))
        for part in self._parts(distinct):
            scores[part] = self._chunk(distinct, part).double().cpu().numpy()
        return scores[inverse]

    def _parts(self, graphs: Graphs) -> Iterator[NDArray[np.int64]]:
        """Graphs that are computed together."""
        if _packs(self.model, graphs):
            order = np.argsort(graphs.sizes, kind="stable")
            filled = np.cumsum(graphs.sizes[order]) // CHUNK_NODES
            yield from np.split(order, np.flatnonzero(np.diff(filled)) + 1)
            return
        for size in np.unique(graphs.sizes):
            rows, chunk = np.flatnonzero(graphs.sizes == size), self._chunk_size(int(size))
            yield from (rows[start : start + chunk] for start in range(0, len(rows), chunk))

    def _chunk_size(self, nodes: int) -> int:
        """Graphs of so many nodes that are computed at once."""
        if self.frozen is None:
            return max(1, CHUNK_NODES // nodes)
        return GRAPHED if self.frozen.records else max(1, CHUNK_TOKENS // (nodes + TOKENS))

    def _chunk(self, graphs: Graphs, rows: NDArray[np.int64]) -> Tensor:
        if self.frozen is not None:
            return self.frozen(graphs, rows)
        part = graphs.take(rows)
        if self.packed is not None and _packs(self.model, part):
            return self.packed(part)
        return _general(self.model, part, self.precision)


def _general(model: NNFormer, graphs: Graphs, precision: str) -> Tensor:
    device = next(model.parameters()).device
    batch = PackedBatch.of(graphs, device) if _packs(model, graphs) else Batch.of(graphs, device=device)
    with autocast(precision, device):
        predicted: Tensor = model(batch)
    return predicted.float()


def _packs(model: NNFormer, graphs: Graphs) -> bool:
    return packable(model.config) and len(graphs) > 0 and bool(graphs.sizes.mean() >= PACKED_FROM)


def _dtype(precision: str, device: torch.device) -> torch.dtype:
    return {"bf16": torch.bfloat16, "fp32": torch.float32}.get(precision) or fast_dtype(device)


class _Frozen:
    """Weights of an accuracy model laid out for inference, and the forward pass over equal-sized graphs."""

    def __init__(self, model: NNFormer, precision: str) -> None:
        self.model, self.config = model, model.config
        self.device = next(model.parameters()).device
        self.dtype = _dtype(precision, self.device)
        self.blocks = [_Layer(block, self.dtype) for block in model.blocks if isinstance(block, Block)]
        operations = torch.arange(self.config.operations, device=self.device)
        self.operations = model.embed_norm(model.embed.weight.T[operations]).to(self.dtype)
        self.token = model.embed_norm(model.class_token[0, 0]).to(self.dtype)
        self.depths = model.embed_norm(model.depth.weight.T).to(self.dtype)
        self._static: dict[int, StaticForward] = {}

    @staticmethod
    def supports(model: NNFormer) -> bool:
        """The fast path is for the accuracy model with bidirectional or vanilla feed-forward and no position code."""
        config = model.config
        plain = not (config.bias or config.layer_scale or config.attributes or config.shapes or config.static)
        known = config.position == "none" and config.feed_forward in ("bidirectional", "vanilla") and config.embed_norm
        return plain and known and config.readout == "class_token" and config.heads == 4

    def __call__(self, graphs: Graphs, rows: NDArray[np.int64]) -> Tensor:
        batch = Batch.of(graphs, rows, self.device)
        self.model.check(batch)
        if not self.records:
            return self.forward(batch, _Relatives(batch.adjacency))
        nodes = batch.ops.shape[1]
        if nodes not in self._static:
            self._static[nodes] = StaticForward(self.dense, GRAPHED, nodes, self.device)
        return self._static[nodes](batch)

    @property
    def records(self) -> bool:
        """Whether passes are recorded, in batches of :data:`GRAPHED`."""
        return self.device.type == "cuda" and self.config.attention != "global"

    def dense(self, batch: Batch) -> Tensor:
        """The forward pass with shapes that do not depend on the edges."""
        return self.forward(batch, _DenseRelatives(batch.adjacency, self.dtype))

    def forward(self, batch: Batch, relatives: _Relatives | _DenseRelatives) -> Tensor:
        """``(B,)`` for graphs of one size."""
        topology = Topology.of(batch, self.config, self.dtype)
        count, length = len(batch.ops), batch.ops.shape[1] + 2
        x = torch.empty(count, length, self.config.dim, dtype=self.dtype, device=self.device)
        x[:, 0], x[:, 1], x[:, 2:] = self.token, self.depths[batch.sizes], self.operations[batch.ops]
        masks = None if topology.masks is None else topology.masks.float()
        for layer in self.blocks[:-1]:
            layer.attention(x, x, masks)
            layer.feed_forward(x, relatives)
        last, first = self.blocks[-1], x[:, :1].clone()
        last.attention(x, first, None if masks is None else masks[:, :, :1])
        last.feed_forward(first, None)
        return self.model.read(self.model.norm(first[:, 0].float()), batch)


class _Layer:
    """One block; both mixers add their output to what they are given."""

    def __init__(self, block: Block, dtype: torch.dtype) -> None:
        attention, ffn = block.attention, block.feed_forward
        dim = attention.out.weight.shape[0]
        self.heads = attention.heads
        scale = torch.ones(3 * dim, 1, device=attention.qkv.weight.device)
        scale[:dim] = (dim // self.heads) ** -0.5
        self.qkv = (attention.qkv.weight * scale).T.to(dtype).contiguous()
        self.out = attention.out.weight.T.to(dtype).contiguous()
        parts = 1 if ffn.graph is None else 2
        hidden = ffn.up.weight.shape[0] // parts
        self.up = [w.T.to(dtype).contiguous() for w in torch.split(ffn.up.weight, hidden)]
        graph = () if ffn.graph is None else torch.split(ffn.graph.weight, hidden)
        self.graph = [w.T.to(dtype).contiguous() for w in graph]
        self.down = [w.to(dtype).contiguous() for w in torch.split(ffn.down.weight.T, hidden)]
        norms = (block.norm_attention, block.norm_feed_forward)
        self.norms = [(norm.weight.to(dtype), norm.bias.to(dtype), norm.eps) for norm in norms]

    def normed(self, x: Tensor, which: int = 1) -> Tensor:
        weight, bias, eps = self.norms[which]
        return functional.layer_norm(x, weight.shape, weight, bias, eps)

    def attention(self, x: Tensor, into: Tensor, masks: Tensor | None) -> None:
        """Queries are the first positions of ``x``, as many as ``into`` has."""
        (count, length, dim), queries = x.shape, into.shape[1]
        projected = (self.normed(x, 0).view(-1, dim) @ self.qkv).view(count, length, 3, self.heads, -1)
        heads = torch.empty(3, count, self.heads, length, projected.shape[-1], device=x.device)
        q, k, v = heads.copy_(projected.permute(2, 0, 3, 1, 4)).view(3, count * self.heads, length, -1).unbind(0)
        weights = short_softmax(q[:, :queries], k, masks)
        mixed = torch.bmm(weights, v).view(count, self.heads, queries, -1)
        joined = torch.empty(count, queries, self.heads, mixed.shape[-1], dtype=x.dtype, device=x.device)
        into.view(-1, dim).addmm_(joined.copy_(mixed.transpose(1, 2)).view(-1, dim), self.out)

    def feed_forward(self, x: Tensor, relatives: _Relatives | _DenseRelatives | None) -> None:
        """Without relatives nothing is summed, as is true of the tokens."""
        rows, into = self.normed(x).view(-1, x.shape[-1]), x.view(-1, x.shape[-1])
        sums = relatives.sums(rows) if self.graph and relatives is not None else ()
        for part, (up, down) in enumerate(zip(self.up, self.down, strict=True)):
            hidden = rows @ up
            if sums:
                hidden.addmm_(sums[part], self.graph[part])
            into.addmm_(hidden.relu_(), down)


class _Relatives:
    """Children and parents of all positions of a chunk, as lists for one pass over both."""

    def __init__(self, adjacency: Tensor) -> None:
        """From ``(B, N, N)``; positions of a graph are its tokens and then its nodes."""
        length = adjacency.shape[1] + TOKENS
        lists, counts = [], []
        for matrix in (adjacency, adjacency.mT):
            graph, _, relative = matrix.nonzero().unbind(1)
            lists.append(graph * length + TOKENS + relative)
            counts.append(functional.pad(matrix.sum(-1), (TOKENS, 0)).view(-1))
        self.positions = torch.cat(lists)
        ends = torch.cat(counts).cumsum(0)
        self.starts = functional.pad(ends[:-1], (1, 0))

    def sums(self, rows: Tensor) -> tuple[Tensor, ...]:
        """``(positions, C)`` -> sums over the children and over the parents of each, of that shape."""
        return functional.embedding_bag(self.positions, rows, self.starts, mode="sum").chunk(2)


class _DenseRelatives:
    """The same by matrix products, whose shapes do not depend on how many edges there are."""

    def __init__(self, adjacency: Tensor, dtype: torch.dtype) -> None:
        padded = functional.pad(adjacency, (TOKENS, 0, TOKENS, 0)).to(dtype)
        self.both = torch.stack([padded, padded.mT])

    def sums(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Sum rows over relatives, as :meth:`_Relatives.sums` does."""
        count, length = self.both.shape[1:3]
        summed: Tensor = self.both @ rows.view(count, length, -1)
        return tuple(summed.view(2, len(rows), -1))
