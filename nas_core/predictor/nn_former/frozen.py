"""Fast inference of NN-Former, with constant weights in the layout and precision of the matrix products."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import torch
from torch import Tensor
from torch.nn import functional

from nas_core.graph import Graphs
from nas_core.predictor.device import on_host
from nas_core.predictor.nn_former.attend import short_softmax
from nas_core.predictor.nn_former.batch import TOKENS, Batch, Topology
from nas_core.predictor.nn_former.model import Block, NNFormer
from nas_core.predictor.nn_former.packed import PackedBatch, PackedTopology, packable

ROWS = 1024  # number of input rows for which oneDNN optimises the layout of weights


class FrozenDense:
    """NN-Former for accuracy with constant weights, for graphs of equal size."""

    def __init__(self, model: NNFormer, dtype: torch.dtype) -> None:
        self.model, self.config, self.dtype = model, model.config, dtype
        self.device = next(model.parameters()).device
        blocks = [block for block in model.blocks if isinstance(block, Block)]
        self.blocks = [_DenseBlock(block, dtype, block is blocks[-1]) for block in blocks]
        self.operations = model.embed_norm(model.embed.weight.T).to(dtype)
        self.token = model.embed_norm(model.class_token[0, 0]).to(dtype)
        self.depths = model.embed_norm(model.depth.weight.T).to(dtype)

    @staticmethod
    def supports(model: NNFormer) -> bool:
        config = model.config
        plain = not (config.bias or config.layer_scale or config.attributes or config.shapes or config.static)
        return plain and config.readout == "class_token" and config.embed_norm and config.heads == 4

    def __call__(self, batch: Batch) -> Tensor:
        """Return predictions ``(B,)``."""
        self.model.check(batch)
        topology = Topology.of(batch, self.config, self.dtype)
        count, length = len(batch.ops), batch.ops.shape[1] + TOKENS
        x = torch.empty(count, length, self.config.dim, dtype=self.dtype, device=self.device)
        x[:, 0], x[:, 1], x[:, 2:] = self.token, self.depths[batch.sizes], self.operations[batch.ops]
        masks = topology.masks.float()

        def dense_sums(rows: Tensor) -> tuple[Tensor, ...]:  # without synchronisation
            return tuple(sums.flatten(0, 1) for sums in topology.sums(rows.view(count, length, -1)))

        sums_of = _Relatives(batch.adjacency).sums if on_host(self.device) else dense_sums
        for layer in self.blocks[:-1]:
            x = layer.feed_forward(layer.attention(x, length, masks), sums_of)
        last = self.blocks[-1]
        first = last.attention(x, 1, masks[:, :, :1])
        first = last.feed_forward(first, None)
        return self.model.read(self.model.norm(first[:, 0].float()), batch)


class _Relatives:
    """Children and parents of all positions as index lists, which are fast on a CPU."""

    def __init__(self, adjacency: Tensor) -> None:
        length = adjacency.shape[1] + TOKENS
        lists, counts = [], []
        for matrix in (adjacency, adjacency.mT):
            graph, _, relative = matrix.nonzero().unbind(1)
            lists.append(graph * length + TOKENS + relative)
            counts.append(functional.pad(matrix.sum(-1), (TOKENS, 0)).view(-1))
        self.positions = torch.cat(lists)
        self.starts = functional.pad(torch.cat(counts).cumsum(0)[:-1], (1, 0))

    def sums(self, rows: Tensor) -> tuple[Tensor, ...]:
        sums: Tensor = torch.embedding_bag(rows, self.positions, self.starts)[0]  # torch.nn's checks take longer
        return sums.chunk(2)


class _DenseBlock:
    """Block of the accuracy model, without biases.

    Args:
        last: True for the last block, which computes the class token only.
    """

    def __init__(self, block: Block, dtype: torch.dtype, last: bool) -> None:
        attention, ffn = block.attention, block.feed_forward
        dim = attention.out.weight.shape[0]
        self.heads = attention.heads
        scale = torch.ones(3 * dim, 1, device=attention.qkv.weight.device)
        scale[:dim] = (dim // self.heads) ** -0.5
        self.qkv = Product(attention.qkv.weight * scale, dtype)
        self.out = Product(attention.out.weight, dtype)
        hidden = ffn.up.weight.shape[0] // 2
        up = torch.split(ffn.up.weight, hidden)
        if not last:  # one product for a node and the sums of its relatives
            up = tuple(torch.cat(pair, 1) for pair in zip(up, torch.split(ffn.graph.weight, hidden), strict=True))
        self.up = [Product(weight, dtype) for weight in up]
        self.down = [Product(weight, dtype) for weight in torch.split(ffn.down.weight, hidden, 1)]
        norms = (block.norm_attention, block.norm_feed_forward)
        self.norms = [(norm.normalized_shape, norm.weight.to(dtype), norm.bias.to(dtype), norm.eps) for norm in norms]

    def attention(self, x: Tensor, queries: int, masks: Tensor) -> Tensor:
        """Return the input plus attention ``(B, Q, C)`` for the first ``queries`` positions of ``(B, L, C)``.

        Args:
            masks: ``(B, H, Q, L)`` of 0 and 1.
        """
        count, length, dim = x.shape
        projected = self.qkv(torch.layer_norm(x, *self.norms[0]).view(-1, dim)).view(count, length, 3, self.heads, -1)
        mixed = _attend(projected, queries, masks)
        residual = x if queries == length else x[:, :queries].contiguous()
        return self.out.add(mixed.view(-1, dim), residual.view(-1, dim)).view(count, queries, dim)

    def feed_forward(self, x: Tensor, sums_of: Callable[[Tensor], tuple[Tensor, ...]] | None) -> Tensor:
        """Return the input ``(B, L, C)`` plus the feed-forward layer.

        Args:
            sums_of: function from positions ``(B L, C)`` to sums of their children and parents; None: they have none.
        """
        residual = x.view(-1, x.shape[-1])
        rows = torch.layer_norm(residual, *self.norms[1])
        inputs = [rows] * len(self.up)
        if sums_of is not None:
            inputs = [torch.cat([rows, sums], 1) for sums in sums_of(rows)]
        for values, up, down in zip(inputs, self.up, self.down, strict=True):
            residual = down.add(up(values, relu=True), residual)
        return residual.view(x.shape)


def _attend(projected: Tensor, queries: int, masks: Tensor) -> Tensor:
    count, length, _, heads, channels = projected.shape
    by_head = torch.empty(3, count, heads, length, channels, device=projected.device)
    q, k, v = by_head.copy_(projected.permute(2, 0, 3, 1, 4)).view(3, count * heads, length, channels).unbind(0)
    mixed = torch.bmm(short_softmax(q[:, :queries], k, masks), v).view(count, heads, queries, channels)
    output = torch.empty(count, queries, heads, channels, dtype=projected.dtype, device=projected.device)
    return output.copy_(mixed.transpose(1, 2))


class Product:
    """Product x Wᵀ of x ``(rows, in)`` and a constant weight W ``(out, in)``, fused with ReLU or a sum."""

    # Half-precision weights on a CPU are in oneDNN's layout; in float32 torch's products are as fast.

    def __init__(self, weight: Tensor, dtype: torch.dtype) -> None:
        cast = weight.detach().to(dtype)
        self.weight, self.packed = cast.T.contiguous(), False
        if on_host(weight.device) and dtype != torch.float32:
            with suppress(AttributeError, RuntimeError):  # no oneDNN, or a processor without products in this type
                self.weight = torch.ops.mkldnn._reorder_linear_weight(cast.contiguous(), ROWS)
                products = torch.ops.mkldnn._linear_pointwise  # looked up once: that takes as long as a small product
                self._product, self._sum, self.packed = products.default, products.binary, True

    def __call__(self, x: Tensor, relu: bool = False) -> Tensor:
        if self.packed:
            product: Tensor = self._product(x, self.weight, None, "relu" if relu else "none", [], "")
            return product
        product = x @ self.weight
        return product.relu_() if relu else product

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        if not self.packed:
            return torch.addmm(residual, x, self.weight)
        product: Tensor = self._sum(x, residual, self.weight, None, "add")
        return product


class FrozenPacked:
    """NN-Former with constant weights and a readout that sums over nodes, for packed graphs."""

    def __init__(self, model: NNFormer, dtype: torch.dtype) -> None:
        self.model, self.config, self.dtype = model, model.config, dtype
        self.device = next(model.parameters()).device
        self.blocks = [_PackedBlock(block, dtype) for block in model.blocks if isinstance(block, Block)]

    @staticmethod
    def supports(model: NNFormer) -> bool:
        config = model.config
        return packable(config) and config.bias

    def __call__(self, graphs: Graphs) -> Tensor:
        batch = PackedBatch.of(graphs, self.device)
        self.model.check(batch)
        topology = PackedTopology.of(batch.edges, batch.ops.numel(), self.device, trained=False)
        x = self.model.embed_nodes(batch)[0]
        degrees = [degree[0].to(self.dtype) for degree in topology.sums(torch.ones_like(x[None, :, :1]))]
        for block in self.blocks:
            block.add_attention(x, topology)
            block.add_feed_forward(x, topology, degrees)
        predicted: Tensor = self.model.read(self.model.norm(x)[None], batch)
        return predicted.float()


class _PackedBlock:
    def __init__(self, block: Block, dtype: torch.dtype) -> None:
        attention, ffn = block.attention, block.feed_forward
        self.block, self.heads, self.dtype = block, attention.heads, dtype
        self.qkv = _prepare(attention.qkv.weight, attention.qkv.bias, None, dtype)
        self.out = _prepare(attention.out.weight, attention.out.bias, block.scale_attention, dtype)
        half = ffn.up.weight.shape[0] // 2
        pairs = zip(*(torch.split(p, half) for p in (ffn.up.weight, ffn.up.bias)), strict=True)
        self.up = [_prepare(weight, bias, None, dtype) for weight, bias in pairs]
        # A projection's bias is multiplied by the number of relatives: one more row of weights, for their count.
        graph = torch.cat([ffn.graph.weight, ffn.graph.bias[:, None]], 1)
        self.graph = [w.T.to(dtype).contiguous() for w in torch.split(graph, half)]
        self.down_bias, down = _prepare(ffn.down.weight, ffn.down.bias, block.scale_feed_forward, dtype)
        self.down = [w.contiguous() for w in torch.split(down, half)]

    def add_attention(self, x: Tensor, topology: PackedTopology) -> None:
        qkv_bias, qkv = self.qkv
        projected = torch.addmm(qkv_bias, self.block.norm_attention(x).to(self.dtype), qkv)
        out_bias, out = self.out
        x += torch.addmm(out_bias, topology.attend(projected[None], self.heads, 0.0)[0], out)

    def add_feed_forward(self, x: Tensor, topology: PackedTopology, degrees: list[Tensor]) -> None:
        """Add the feed-forward layer to nodes ``(T, C)`` in place; ``degrees`` are numbers of relatives ``(T, 1)``."""
        normed = self.block.norm_feed_forward(x).to(self.dtype)
        output = self.down_bias.expand(len(x), -1).clone()
        for (bias, up), graph, down, pairs, degree in zip(
            self.up, self.graph, self.down, topology.splits, degrees, strict=True
        ):
            sums = functional.embedding_bag(pairs.columns, normed, pairs.starts, mode="sum")
            hidden = torch.addmm(bias, normed, up).addmm_(torch.cat([sums, degree], 1), graph)
            output.addmm_(hidden.relu_(), down)
        x += output


def _prepare(weight: Tensor, bias: Tensor, scale: Tensor | None, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    factor = torch.ones_like(bias) if scale is None else scale
    return (bias * factor).to(dtype), (weight * factor[:, None]).T.to(dtype).contiguous()
