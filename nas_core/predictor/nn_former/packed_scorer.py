"""Fast scoring of large graphs by models that sum over nodes: packed, in the device's fast precision, in chunks whose
activations stay in cache."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from nas_core.graph import Graphs
from nas_core.predictor.nn_former.blocks import Block
from nas_core.predictor.nn_former.model import NNFormer
from nas_core.predictor.nn_former.packed import PackedBatch, PackedTopology

__all__ = ["FrozenPacked"]


class FrozenPacked:
    """Weights of a model laid out for inference over packed graphs; later changes of the model are not seen."""

    def __init__(self, model: NNFormer, dtype: torch.dtype) -> None:
        self.model, self.config, self.dtype = model, model.config, dtype
        self.device = next(model.parameters()).device
        self.layers = [_Layer(block, dtype) for block in model.blocks if isinstance(block, Block)]

    @staticmethod
    def supports(model: NNFormer) -> bool:
        return model.config.feed_forward == "bidirectional" and model.config.bias

    def __call__(self, graphs: Graphs) -> Tensor:
        """``(B,)``.

        Raises:
            GraphError: a graph the model was not built for.
        """
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
    """One block; both mixers add their output to what they are given. Factors of the branches are in the weights."""

    def __init__(self, block: Block, dtype: torch.dtype) -> None:
        attention, ffn = block.attention, block.feed_forward
        assert ffn.graph is not None
        self.block, self.heads, self.dtype = block, attention.heads, dtype
        self.qkv = _Linear(attention.qkv.weight, attention.qkv.bias, None, dtype)
        self.out = _Linear(attention.out.weight, attention.out.bias, block.scale_attention, dtype)
        half = ffn.up.weight.shape[0] // 2
        parts = zip(*(torch.split(p, half) for p in (ffn.up.weight, ffn.up.bias)), strict=True)
        self.up = [_Linear(weight, bias, None, dtype) for weight, bias in parts]
        # A projection's bias is multiplied by the number of relatives: a row of weights for their count.
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
    """x W + b with W as the product needs it."""

    def __init__(self, weight: Tensor, bias: Tensor, scale: Tensor | None, dtype: torch.dtype) -> None:
        factor = torch.ones_like(bias) if scale is None else scale
        self.weight, self.bias = (weight * factor[:, None]).T.to(dtype).contiguous(), (bias * factor).to(dtype)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)
