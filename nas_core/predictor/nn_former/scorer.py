"""Fast inference of NN-Former with frozen weights, on each distinct graph once.

Small graphs of one size are batched (:class:`Frozen`), on CUDA as one CUDA graph (:class:`StaticForward`). Large graphs
are packed (:class:`FrozenPacked`). Other models run unchanged.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from nas_core.device import uncollected
from nas_core.graph import Graphs
from nas_core.precision import check_precision, computing_in, half_type, tf32
from nas_core.predictor.device import chosen_precision, on_host
from nas_core.predictor.nn_former.attend import short_softmax
from nas_core.predictor.nn_former.batch import TOKENS, Batch, Topology
from nas_core.predictor.nn_former.model import Block, NNFormer
from nas_core.predictor.nn_former.packed import PACKED_FROM, PackedBatch, PackedTopology, packable

CHUNK_TOKENS = 5000
"""Positions per chunk of the fast path; their activations fit a second-level cache."""
GRAPHED = 512
"""Graphs per recorded CUDA graph."""
CHUNK_NODES, CHUNK_NODES_THERE = 1500, 24_000
"""Nodes per chunk of the general path and of packed graphs: on the CPU, and on an accelerator."""
SENT = 16 * 2**20
"""Bytes of adjacency matrices per transfer to an accelerator in the fast path: 300,000 cells of seven nodes."""
ROWS = 1024
"""Number of rows for which oneDNN optimises the layout of weights."""
WARM_UP = 3
_RECORDING = threading.Lock()
"""Lock of recordings: the start of one synchronises the device, which would break another thread's."""
_log = logging.getLogger(__name__)


def score(model: NNFormer, graphs: Graphs, precision: str = "auto") -> NDArray[np.float64]:
    return Scorer(model, precision)(graphs)


class Scorer:
    """Trained model with frozen weights; later changes of the weights have no effect.

    Args:
        precision: precision of matrix products: fp32, tf32, bf16, fp16, or auto, the device's fast one.

    Raises:
        ConfigError: the model's device does not support the precision.
    """

    @torch.inference_mode()
    def __init__(self, model: NNFormer, precision: str = "auto") -> None:
        self.model = model.eval()
        self.device = next(model.parameters()).device
        self.precision = check_precision(chosen_precision(precision, self.device), self.device)
        dtype = half_type(self.precision) or torch.float32
        self.frozen = Frozen(model, dtype) if Frozen.supports(model) else None
        self.packed = FrozenPacked(model, dtype) if FrozenPacked.supports(model) else None

    @torch.inference_mode()
    def __call__(self, graphs: Graphs) -> NDArray[np.float64]:
        """Predict ``(G,)``, equal to the model within the precision, with one synchronisation."""
        if len(graphs) == 1 and self.frozen is not None:
            return self.frozen(Batch.of(graphs, device=self.device)).double().cpu().numpy()
        distinct, inverse = graphs.distinct()
        if not len(distinct):
            return np.zeros(0)
        with tf32(self.precision == "tf32"):
            blocks = [(rows, self._block(distinct.take(rows))) for rows in self.blocks(distinct)]
        scores = np.zeros(len(distinct))
        predicted = torch.cat([part for _, part in blocks]).double().cpu().numpy()
        scores[np.concatenate([rows for rows, _ in blocks])] = predicted
        return scores[inverse]

    def blocks(self, graphs: Graphs) -> Iterator[NDArray[np.int64]]:
        """Yield the indices of graphs that are computed together."""
        host = on_host(self.device)
        nodes = CHUNK_NODES if host else CHUNK_NODES_THERE
        if self._packs(graphs):
            order = np.argsort(graphs.sizes, kind="stable")
            filled = np.cumsum(graphs.sizes[order]) // nodes
            yield from np.split(order, np.flatnonzero(np.diff(filled)) + 1)
            return
        for size in np.unique(graphs.sizes).tolist():
            chunk = max(1, nodes // size)
            if self.frozen is not None:
                chunk = max(1, CHUNK_TOKENS // (size + TOKENS)) if host else max(GRAPHED, SENT // size**2)
            rows = np.flatnonzero(graphs.sizes == size)
            yield from (rows[start : start + chunk] for start in range(0, len(rows), chunk))

    def _packs(self, graphs: Graphs) -> bool:
        return packable(self.model.config) and bool(graphs.sizes.mean() >= PACKED_FROM)

    def _block(self, graphs: Graphs) -> Tensor:
        if self.frozen is not None:
            return self.frozen(Batch.of(graphs, device=self.device))
        packs = self._packs(graphs)
        if self.packed is not None and packs:
            return self.packed(graphs)
        batch = PackedBatch.of(graphs, self.device) if packs else Batch.of(graphs, device=self.device)
        with computing_in(self.precision, self.device):
            predicted: Tensor = self.model(batch)
        return predicted.float()


class Frozen:
    """Frozen accuracy model for graphs of equal size."""

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
        config = model.config
        plain = not (config.bias or config.layer_scale or config.attributes or config.shapes or config.static)
        reads_token = config.readout == "class_token" and config.position == "none" and config.embed_norm
        return plain and reads_token and config.heads == 4

    def __call__(self, batch: Batch) -> Tensor:
        """Predict ``(B,)``, on an accelerator in parts of :data:`GRAPHED`."""
        self.model.check(batch)
        if on_host(self.device):
            return self.forward(batch, _Relatives(batch.adjacency))
        nodes = batch.ops.shape[1]
        if nodes not in self._static:
            weak = weakref.ref(self)  # without a reference cycle recordings are freed with this object
            self._static[nodes] = StaticForward(lambda batch: _alive(weak).dense(batch), GRAPHED, nodes, self.device)
        starts = range(0, len(batch.ops), GRAPHED)
        return torch.cat([self._static[nodes](batch.take(slice(start, start + GRAPHED))) for start in starts])

    def dense(self, batch: Batch) -> Tensor:
        """Predict ``(B,)`` with shapes that do not depend on the edges."""
        return self.forward(batch, _DenseRelatives(batch.adjacency, self.dtype))

    def forward(self, batch: Batch, relatives: _Relatives | _DenseRelatives) -> Tensor:
        topology = Topology.of(batch, self.config, self.dtype)
        count, length = len(batch.ops), batch.ops.shape[1] + 2
        x = torch.empty(count, length, self.config.dim, dtype=self.dtype, device=self.device)
        x[:, 0], x[:, 1], x[:, 2:] = self.token, self.depths[batch.sizes], self.operations[batch.ops]
        masks = None if topology.masks is None else topology.masks.float()
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
    """Children and parents of all positions, as lists."""

    def __init__(self, adjacency: Tensor) -> None:
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
        """Sum ``(positions, C)`` over the children and over the parents of each position."""
        sums: Tensor = torch.embedding_bag(rows, self.positions, self.starts)[0]  # torch.nn's checks take longer
        return sums.chunk(2)


class _DenseRelatives:
    """Children and parents as matrices, with shapes that do not depend on the edges."""

    def __init__(self, adjacency: Tensor, dtype: torch.dtype) -> None:
        padded = functional.pad(adjacency, (TOKENS, 0, TOKENS, 0)).to(dtype)
        self.both = torch.stack([padded, padded.mT])

    def sums(self, rows: Tensor) -> tuple[Tensor, ...]:
        count, length = self.both.shape[1:3]
        summed: Tensor = self.both @ rows.view(count, length, -1)
        return tuple(summed.view(2, len(rows), -1))


class FrozenBlock:
    """Frozen :class:`Block` of the accuracy model, without biases.

    Args:
        last: compute the feed-forward for tokens alone, which have no relatives.
    """

    def __init__(self, block: Block, dtype: torch.dtype, last: bool) -> None:
        attention, ffn = block.attention, block.feed_forward
        dim = attention.out.weight.shape[0]
        self.heads = attention.heads
        scale = torch.ones(3 * dim, 1, device=attention.qkv.weight.device)
        scale[:dim] = (dim // self.heads) ** -0.5
        self.qkv = Product(attention.qkv.weight * scale, dtype)
        self.out = Product(attention.out.weight, dtype)
        parts = 1 if ffn.graph is None else 2
        hidden = ffn.up.weight.shape[0] // parts
        up = torch.split(ffn.up.weight, hidden)
        if ffn.graph is not None and not last:  # one product for a node and the sums of its relatives
            up = tuple(torch.cat(pair, 1) for pair in zip(up, torch.split(ffn.graph.weight, hidden), strict=True))
        self.up = [Product(weight, dtype) for weight in up]
        self.down = [Product(weight, dtype) for weight in torch.split(ffn.down.weight, hidden, 1)]
        self.relatives = ffn.graph is not None and not last
        norms = (block.norm_attention, block.norm_feed_forward)
        self.norms = [(norm.normalized_shape, norm.weight.to(dtype), norm.bias.to(dtype), norm.eps) for norm in norms]

    def attention(self, x: Tensor, queries: int, masks: Tensor | None) -> Tensor:
        """Return input plus attention ``(B, Q, C)`` of the first ``queries`` positions of ``(B, L, C)``.

        Args:
            masks: ``(B, H, Q, L)``, 0 and 1; None: all positions.
        """
        count, length, dim = x.shape
        projected = self.qkv(torch.layer_norm(x, *self.norms[0]).view(-1, dim)).view(count, length, 3, self.heads, -1)
        mixed = _mixed(projected, queries, masks)
        into = x if queries == length else x[:, :queries].contiguous()
        return self.out.added(mixed.view(-1, dim), into.view(-1, dim)).view(count, queries, dim)

    def feed_forward(self, x: Tensor, relatives: _Relatives | _DenseRelatives | None) -> Tensor:
        """Return input plus feed-forward of ``(B, L, C)``."""
        into = x.view(-1, x.shape[-1])
        rows = torch.layer_norm(into, *self.norms[1])
        inputs = [rows] * len(self.up)
        if self.relatives:
            assert relatives is not None
            inputs = [torch.cat([rows, sums], 1) for sums in relatives.sums(rows)]
        for part, up, down in zip(inputs, self.up, self.down, strict=True):
            into = down.added(up.relu(part), into)
        return into.view(x.shape)


def _mixed(projected: Tensor, queries: int, masks: Tensor | None) -> Tensor:
    """Attend ``(B, L, 3, H, D)`` -> ``(B, Q, H, D)`` on contiguous copies of the heads."""
    count, length, _, heads, channels = projected.shape
    by_head = torch.empty(3, count, heads, length, channels, device=projected.device)
    q, k, v = by_head.copy_(projected.permute(2, 0, 3, 1, 4)).view(3, count * heads, length, channels).unbind(0)
    mixed = torch.bmm(short_softmax(q[:, :queries], k, masks), v).view(count, heads, queries, channels)
    joined = torch.empty(count, queries, heads, channels, dtype=projected.dtype, device=projected.device)
    return joined.copy_(mixed.transpose(1, 2))


class Product:
    """Product x Wᵀ of x ``(rows, in)`` and W ``(out, in)``, fused with relu or a sum.

    Half-precision weights are in oneDNN's layout; in float32 torch's products are as fast.
    """

    def __init__(self, weight: Tensor, dtype: torch.dtype) -> None:
        cast = weight.detach().to(dtype)
        self.packed = on_host(weight.device) and dtype != torch.float32
        if self.packed:
            try:
                self.weight: Tensor = torch.ops.mkldnn._reorder_linear_weight(cast.contiguous(), ROWS)
                products = torch.ops.mkldnn._linear_pointwise  # looked up once: that takes as long as a small product
                self._product, self._sum = products.default, products.binary
            except (AttributeError, RuntimeError):  # no oneDNN, or a processor without products in this type
                self.packed = False
        if not self.packed:
            self.weight = cast.T.contiguous()

    def __call__(self, x: Tensor) -> Tensor:
        if not self.packed:
            return x @ self.weight
        product: Tensor = self._product(x, self.weight, None, "none", [], "")
        return product

    def relu(self, x: Tensor) -> Tensor:
        if not self.packed:
            return (x @ self.weight).relu_()
        product: Tensor = self._product(x, self.weight, None, "relu", [], "")
        return product

    def added(self, x: Tensor, other: Tensor) -> Tensor:
        if not self.packed:
            return torch.addmm(other, x, self.weight)
        product: Tensor = self._sum(x, other, self.weight, None, "add")
        return product


class StaticForward:
    """Forward pass over batches padded to a fixed number of graphs and nodes, recorded on CUDA.

    A CUDA graph launches hundreds of small kernels at once. If recording fails, passes run kernel by kernel. A pass
    runs in the caller's stream of the device. All passes share memory and wait for one another.

    Args:
        forward: ``Batch -> (B,)`` without copies to the host or data-dependent shapes.
    """

    # Not in inference mode: up to 2.12 the first recording keeps torch's random state as a tensor of that mode, which
    # recordings outside it cannot change.
    @torch.inference_mode(False)
    @torch.no_grad()
    def __init__(self, forward: Callable[[Batch], Tensor], graphs: int, nodes: int, device: torch.device) -> None:
        self._forward, self._alone = forward, threading.Lock()
        self.batch = Batch(
            torch.zeros(graphs, nodes, dtype=torch.int64, device=device),
            torch.zeros(graphs, nodes, nodes, dtype=torch.bool, device=device),
            torch.full((graphs,), nodes, device=device),
            full=True,
        )
        self._device = self.batch.ops.device
        self._output: Tensor | None = None
        self._graph = self._recorded() if recordable(self._device) else None
        self._finished = None if self._graph is None else torch.cuda.Event()  # type: ignore[no-untyped-call]

    def _recorded(self) -> torch.cuda.CUDAGraph | None:
        """Record one pass after warm-up on another stream."""
        graph = torch.cuda.CUDAGraph()
        try:
            with _RECORDING, uncollected(), torch.cuda.device(self._device):  # a graph that is freed ends a recording
                current = torch.cuda.current_stream(self._device)
                warm_up, recorder = (torch.cuda.Stream(self._device) for _ in range(2))  # type: ignore[no-untyped-call]
                warm_up.wait_stream(current)
                with torch.cuda.stream(warm_up):
                    for _ in range(WARM_UP):
                        self._forward(self.batch)
                current.wait_stream(warm_up)
                recording = torch.cuda.graph(graph, stream=recorder, capture_error_mode="thread_local")
                with torch.cuda.stream(current), recording:  # a failed recording leaves torch on its stream
                    self._output = self._forward(self.batch)
        except RuntimeError as error:
            _log.warning("the forward pass cannot be recorded as a CUDA graph (%s): it runs step by step", error)
            return None
        return graph

    @property
    def recorded(self) -> bool:
        return self._graph is not None

    @torch.inference_mode()
    def __call__(self, batch: Batch) -> Tensor:
        """Predict ``(B,)`` for up to ``graphs`` graphs of ``nodes`` nodes."""
        with self._alone:
            return self._predicted(batch)

    def _predicted(self, batch: Batch) -> Tensor:
        if self._graph is None or self._output is None or self._finished is None:
            return self._forward(self._filled(batch))[: len(batch.ops)].clone()
        with torch.cuda.device(self._device):
            stream = torch.cuda.current_stream(self._device)
            stream.wait_event(self._finished)
            self._filled(batch)
            self._graph.replay()
            predicted = self._output[: len(batch.ops)].clone()
            self._finished.record(stream)
        return predicted

    def _filled(self, batch: Batch) -> Batch:
        count = len(batch.ops)
        self.batch.ops[:count].copy_(batch.ops)
        self.batch.adjacency[:count].copy_(batch.adjacency)
        return self.batch


def recordable(device: torch.device) -> bool:
    return device.type == "cuda"


class FrozenPacked:
    """Frozen model for packed graphs."""

    def __init__(self, model: NNFormer, dtype: torch.dtype) -> None:
        self.model, self.config, self.dtype = model, model.config, dtype
        self.device = next(model.parameters()).device
        self.layers = [_Layer(block, dtype) for block in model.blocks if isinstance(block, Block)]

    @staticmethod
    def supports(model: NNFormer) -> bool:
        config = model.config
        return packable(config) and config.feed_forward == "bidirectional" and config.bias

    def __call__(self, graphs: Graphs) -> Tensor:
        batch = PackedBatch.of(graphs, self.device)
        self.model.check(batch)
        assert batch.edges is not None
        topology = PackedTopology.of(batch.edges, batch.lengths, self.config, self.device, trained=False)
        x = self.model.embedded(batch)[0]
        degrees = [degree[0].to(self.dtype) for degree in topology.sums(torch.ones_like(x[None, :, :1]))]
        for layer in self.layers:
            layer.attention(x, topology)
            layer.feed_forward(x, topology, degrees)
        predicted: Tensor = self.model.read(self.model.norm(x)[None], batch)
        return predicted.float()


class _Layer:
    def __init__(self, block: Block, dtype: torch.dtype) -> None:
        attention, ffn = block.attention, block.feed_forward
        assert ffn.graph is not None
        self.block, self.heads, self.dtype = block, attention.heads, dtype
        self.qkv = _Linear(attention.qkv.weight, attention.qkv.bias, None, dtype)
        self.out = _Linear(attention.out.weight, attention.out.bias, block.scale_attention, dtype)
        half = ffn.up.weight.shape[0] // 2
        parts = zip(*(torch.split(p, half) for p in (ffn.up.weight, ffn.up.bias)), strict=True)
        self.up = [_Linear(weight, bias, None, dtype) for weight, bias in parts]
        # A projection's bias is multiplied by the number of relatives: one more row of weights, for their count.
        graph = torch.cat([ffn.graph.weight, ffn.graph.bias[:, None]], 1)
        self.graph = [w.T.to(dtype).contiguous() for w in torch.split(graph, half)]
        down = _Linear(ffn.down.weight, ffn.down.bias, block.scale_feed_forward, dtype)
        self.down, self.down_bias = [w.contiguous() for w in torch.split(down.weight, half)], down.bias

    def attention(self, x: Tensor, topology: PackedTopology) -> None:
        normed = self.block.norm_attention(x).to(self.dtype)
        mixed = topology.attend(self.qkv(normed)[None], self.heads, 0.0)[0]
        x += self.out(mixed)

    def feed_forward(self, x: Tensor, topology: PackedTopology, degrees: list[Tensor]) -> None:
        normed = self.block.norm_feed_forward(x).to(self.dtype)
        output = self.down_bias.expand(len(x), -1).clone()
        for up, graph, down, pairs, degree in zip(
            self.up, self.graph, self.down, topology.splits, degrees, strict=True
        ):
            sums = functional.embedding_bag(pairs.columns, normed, pairs.starts, mode="sum")
            hidden = up(normed).addmm_(torch.cat([sums, degree], 1), graph)
            output.addmm_(hidden.relu_(), down)
        x += output


class _Linear:
    """x W + b with scaled, transposed weights."""

    def __init__(self, weight: Tensor, bias: Tensor, scale: Tensor | None, dtype: torch.dtype) -> None:
        factor = torch.ones_like(bias) if scale is None else scale
        self.weight, self.bias = (weight * factor[:, None]).T.to(dtype).contiguous(), (bias * factor).to(dtype)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)
