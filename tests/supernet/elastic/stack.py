"""A stack of elastic layers with a linear head: the smallest network that can be converted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nas_core.layers import ElasticLinear, MoSConfig
from nas_core.layers.depth import kept_layers
from nas_core.layers.transformer import Dropouts, ElasticEncoderLayer, EncoderLayerWeights
from nas_core.layers.weights import Affine
from nas_core.models.elastic import Axis, StackForm, layer_axes
from nas_core.space import Architecture, Choice, SearchSpace

C, F, HEADS, D, LAYERS, OUT = 12, 20, 3, 4, 3, 5


class StackSubnet(NamedTuple):
    layers: tuple[EncoderLayerWeights, ...]
    head: Affine


def stack_space() -> SearchSpace:
    choices = [
        Choice.make("layers", (3, 2, 1)),
        Choice.make("embed_dim", (12, 8)),
        Choice.make("heads", (3, 2), "layers", LAYERS),
        Choice.make("ffn_dim", (20, 10), "layers", LAYERS),
    ]
    return SearchSpace("stack", choices)


class Stack(nn.Module):
    def __init__(self, space: SearchSpace, mos: MoSConfig | None = None) -> None:
        super().__init__()
        self.space, self.order, self.mos = space, (), mos or MoSConfig()
        features = len(space.choices)
        self.layers = nn.ModuleList(ElasticEncoderLayer(C, F, HEADS * D, features, self.mos) for _ in range(LAYERS))
        self.head = ElasticLinear(C, OUT)

    def select(self, architecture: Architecture) -> StackSubnet:
        encoding = torch.from_numpy(self.space.encode(architecture)[0])
        width, heads = architecture.number("embed_dim"), architecture.numbers("heads")
        ffn, layers = architecture.numbers("ffn_dim"), architecture.number("layers")
        kept: list[Any] = kept_layers(self.layers, layers, self.order)
        chosen = tuple(
            layer.select(width, f, h, encoding, qkv_dim=h * D) for layer, f, h in zip(kept, ffn, heads, strict=True)
        )
        return StackSubnet(chosen, self.head.select(width, OUT))

    def forward(self, subnet: StackSubnet, x: Tensor) -> Tensor:
        x = x[..., : subnet.head.weight.shape[1]]
        for layer, weights in zip(self.layers, subnet.layers, strict=False):
            x = layer(x, weights, None, Dropouts())
        return nn.functional.linear(x, *subnet.head)


class _StackForm(StackForm):
    def axes(self, net: Stack) -> tuple[Axis, ...]:
        """The channels of the input are the caller's and are not sorted."""
        return tuple(
            axis
            for index, layer in enumerate(net.layers)
            for axis in layer_axes(f"layers.{index}", f"layers.{index}.", layer, D)
        )

    def set_order(self, net: Stack, order: Mapping[str, Sequence[int]]) -> None:
        net.order = tuple(order[""])


STACK_FORM = _StackForm()


@dataclass
class TrainedStack:
    """A :class:`nas_core.supernet.elastic.conversion.Trained` whose host's own model is a copy of its first weights."""

    net: Stack
    off: float = 0.0
    saved: dict[str, Any] = field(default_factory=dict)
    form = STACK_FORM

    def __post_init__(self) -> None:
        self.space = self.net.space
        self.x = torch.randn(6, 7, C, generator=torch.Generator().manual_seed(3))
        self.y = self.output(self.net).detach() + self.off

    def output(self, net: Stack) -> Tensor:
        return net(net.select(self.space.largest()), self.x)

    def difference(self, net: Stack) -> float:
        with torch.no_grad():
            return float((self.output(net) - self.y).abs().max() / self.y.abs().max())

    def calibration(self, count: int) -> Sequence[Tensor]:
        return [torch.randn(4, 7, C, generator=torch.Generator().manual_seed(index)) for index in range(min(count, 5))]

    def loss(self, net: Stack, subnet: StackSubnet, batch: Tensor) -> Tensor:
        return net(subnet, batch)[..., 0].square().mean()

    def save(self, path: Path, net: Stack) -> None:
        self.saved = {"net": net}
        path.write_text("a supernet")


def trained_stack(off: float = 0.0) -> TrainedStack:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return TrainedStack(Stack(stack_space()), off)
