"""Fast scoring: frozen weights in the device's fast precision, and each different graph once. Small graphs: those of
one size together, chunks that stay in cache, and in the last block the class token alone. Large graphs of all sizes are
packed together."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from nas_core.graph import Graphs
from nas_core.precision import check_precision, computing_in, tf32
from nas_core.predictor.nn_former.batch import TOKENS, Batch, Topology
from nas_core.predictor.nn_former.blocks import Block
from nas_core.predictor.nn_former.cuda_graph import StaticForward
from nas_core.predictor.nn_former.frozen_block import FrozenBlock, seen
from nas_core.predictor.nn_former.model import NNFormer
from nas_core.predictor.nn_former.packed import PACKED_FROM, PackedBatch, packable
from nas_core.predictor.nn_former.packed_scorer import FrozenPacked
from nas_core.predictor.nn_former.place import on_host
from nas_core.predictor.precision import chosen_precision, stored_type

__all__ = ["Scorer", "score"]

CHUNK_TOKENS = 5000
"""Positions computed at once by the fast path; the activations of so many fit a second-level cache."""
GRAPHED = 512
"""Graphs in one recorded forward pass of a CUDA device."""
CHUNK_NODES, CHUNK_NODES_THERE = 1500, 24_000
"""Nodes computed at once by the general path, and where graphs are packed; on the CPU, and on an accelerator."""
SENT = 16 * 2**20
"""Bytes of adjacency matrices sent at once to an accelerator by the fast path: 300,000 cells of seven nodes."""


def score(model: NNFormer, graphs: Graphs, precision: str = "auto") -> NDArray[np.float64]:
    """Predictions ``(G,)``, as :class:`Scorer` gives them."""
    return Scorer(model, precision)(graphs)


class Scorer:
    """A trained model ready to score; keep it where graphs come one by one, since its making takes as long as some
    hundred of them.

    Args:
        model: with the weights it has now; later changes are not seen.
        precision: of matrix products: fp32, tf32, bf16, fp16, or auto, the device's fast one.

    Raises:
        ConfigError: the model's device does not compute in that precision.
    """

    @torch.inference_mode()
    def __init__(self, model: NNFormer, precision: str = "auto") -> None:
        self.model = model.eval()
        self.device = next(model.parameters()).device
        self.precision = check_precision(chosen_precision(precision, self.device), self.device)
        dtype = stored_type(self.precision)
        self.frozen = Frozen(model, dtype) if Frozen.supports(model) else None
        packs = packable(model.config) and FrozenPacked.supports(model)
        self.packed = FrozenPacked(model, dtype) if packs else None

    @torch.inference_mode()
    def __call__(self, graphs: Graphs) -> NDArray[np.float64]:
        """Predictions ``(G,)``; equal to the model's own within the precision. An accelerator is waited for once, at
        the end.

        Raises:
            GraphError: a graph the model was not built for.
        """
        if len(graphs) == 1 and self.frozen is not None:
            return self.frozen(Batch.of(graphs, device=self.device)).double().cpu().numpy()
        distinct, inverse = graphs.distinct()
        scores = np.zeros(len(distinct))
        if not len(distinct):
            return scores
        with tf32(self.precision == "tf32"):
            found = [(rows, part) for block in self.blocks(distinct) for rows, part in self._block(distinct, block)]
        predicted = torch.cat([part for _, part in found]).double().cpu().numpy()
        scores[np.concatenate([rows for rows, _ in found])] = predicted
        return scores[inverse]

    def blocks(self, graphs: Graphs) -> Iterator[NDArray[np.int64]]:
        """Graphs that go to the device together."""
        if _packs(self.model, graphs):
            order = np.argsort(graphs.sizes, kind="stable")
            filled = np.cumsum(graphs.sizes[order]) // self._chunk_nodes
            yield from np.split(order, np.flatnonzero(np.diff(filled)) + 1)
            return
        for size in np.unique(graphs.sizes):
            rows, chunk = np.flatnonzero(graphs.sizes == size), self._block_size(int(size))
            yield from (rows[start : start + chunk] for start in range(0, len(rows), chunk))

    def _block_size(self, nodes: int) -> int:
        """Graphs of so many nodes that go to the device together; the CPU computes these together too."""
        if self.frozen is None:
            return max(1, self._chunk_nodes // nodes)
        if on_host(self.device):
            return max(1, CHUNK_TOKENS // (nodes + TOKENS))
        return max(GRAPHED, SENT // nodes**2)

    @property
    def _chunk_nodes(self) -> int:
        return CHUNK_NODES if on_host(self.device) else CHUNK_NODES_THERE

    def _block(self, graphs: Graphs, rows: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], Tensor]]:
        part = graphs.take(rows)
        if self.frozen is not None:
            yield rows, self.frozen(Batch.of(part, device=self.device))
        elif self.packed is not None and _packs(self.model, part):
            yield rows, self.packed(part)
        else:
            packs = _packs(self.model, part)
            batch = PackedBatch.of(part, self.device) if packs else Batch.of(part, device=self.device)
            with computing_in(self.precision, self.device):
                yield rows, self.model(batch).float()


def _packs(model: NNFormer, graphs: Graphs) -> bool:
    return packable(model.config) and len(graphs) > 0 and bool(graphs.sizes.mean() >= PACKED_FROM)


class Frozen:
    """Weights of an accuracy model laid out for inference, and the forward pass over equal-sized graphs."""

    def __init__(self, model: NNFormer, dtype: torch.dtype) -> None:
        self.model, self.config, self.dtype = model, model.config, dtype
        self.device = next(model.parameters()).device
        blocks = [block for block in model.blocks if isinstance(block, Block)]
        self.blocks = [FrozenBlock(block, dtype, block is blocks[-1]) for block in blocks]
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

    def __call__(self, batch: Batch) -> Tensor:
        """Predictions ``(B,)`` of graphs of one size, on an accelerator in parts of :data:`GRAPHED`.

        Raises:
            GraphError: a graph the model was not built for.
        """
        self.model.check(batch)
        if on_host(self.device):
            return self.forward(batch, _Relatives(batch.adjacency))
        nodes = batch.ops.shape[1]
        if nodes not in self._static:
            own = weakref.ref(self)  # what is recorded goes with this object, not when the collector finds a circle
            self._static[nodes] = StaticForward(lambda batch: _alive(own).dense(batch), GRAPHED, nodes, self.device)
        starts = range(0, len(batch.ops), GRAPHED)
        return torch.cat([self._static[nodes](batch.take(slice(start, start + GRAPHED))) for start in starts])

    def dense(self, batch: Batch) -> Tensor:
        """The forward pass with shapes that do not depend on the edges."""
        return self.forward(batch, _DenseRelatives(batch.adjacency, self.dtype))

    def forward(self, batch: Batch, relatives: _Relatives | _DenseRelatives) -> Tensor:
        """``(B,)`` for graphs of one size."""
        topology = Topology.of(batch, self.config, self.dtype)
        count, length = len(batch.ops), batch.ops.shape[1] + 2
        x = torch.empty(count, length, self.config.dim, dtype=self.dtype, device=self.device)
        x[:, 0], x[:, 1], x[:, 2:] = self.token, self.depths[batch.sizes], self.operations[batch.ops]
        masks = seen(topology.masks, count)
        for layer in self.blocks[:-1]:
            x = layer.feed_forward(layer.attention(x, length, masks), relatives)
        last = self.blocks[-1]
        first = last.attention(x, 1, None if masks is None else masks[:, :, :1])
        first = last.feed_forward(first, None)
        return self.model.read(self.model.norm(first[:, 0].float()), batch)


def _alive(reference: weakref.ref[Frozen]) -> Frozen:
    frozen = reference()
    assert frozen is not None
    return frozen


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
        found: Tensor = torch.embedding_bag(rows, self.positions, self.starts)[0]  # torch.nn's checks take longer
        return found.chunk(2)


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
