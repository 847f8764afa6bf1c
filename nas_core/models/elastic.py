"""Axes of weights that can be reordered, for conversion of trained networks to supernets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from torch import Tensor, nn

from nas_core.layers.depth import check_order


@dataclass(frozen=True)
class TensorDim:
    """One dimension of a tensor in the state dict that belongs to an :class:`Axis`."""

    name: str
    dim: int
    blocks: int = 1
    """Number of copies of the axis in a row, such as 3 for fused queries, keys and values."""


@dataclass(frozen=True)
class Axis:
    """Heads, hidden units or channels of a network that can be reordered."""

    name: str
    """Name in messages and scores, such as ``encoder.layers.2.ffn``."""
    size: int
    dims: tuple[TensorDim, ...]
    unit: int = 1
    """Elements per entry in the weights of ``read_by``: the head dimension of heads, else 1."""
    read_by: tuple[str, ...] = ()
    """Weights ``(out, in)`` of linear layers whose input is the axis."""


class ElasticForm(Protocol):
    """Axes and layers of a network kind, implemented in ``nas_core.models.<kind>.elastic``."""

    def sides(self, net: Any) -> dict[str, int]:
        """Return layers per side: ``{"encoder": 6, "decoder": 6}``, or ``{"": 12}`` for one stack."""

    def axes(self, net: Any) -> tuple[Axis, ...]:
        """Return all axes of a network."""

    def select_layers(self, net: Any, subnet: Any, layers: Mapping[str, Sequence[int]]) -> Any:
        """Return the subnet with only ``layers``, as indices by side.

        Sides that are not in ``layers`` have all layers.
        """

    def set_order(self, net: Any, order: Mapping[str, Sequence[int]]) -> None:
        """Set the order of each side's layers by decreasing importance."""


class StackForm:
    """Base class for networks with one stack of layers, the side ``""``. Subclasses define ``axes``."""

    def sides(self, net: Any) -> dict[str, int]:
        return {"": len(net.layers)}

    def select_layers(self, net: Any, subnet: Any, layers: Mapping[str, Sequence[int]]) -> Any:
        if "" not in layers:
            return subnet
        return subnet._replace(layers=tuple(subnet.layers[index] for index in sorted(layers[""])))

    def set_order(self, net: Any, order: Mapping[str, Sequence[int]]) -> None:
        if "" in order:
            net.config = replace(net.config, layer_order=check_order(order[""], len(net.layers)))

    def _layer_axes(self, net: Any) -> list[Axis]:
        head_dim = net.space.largest().number("head_dim")
        named = ((f"layers.{index}", layer) for index, layer in enumerate(net.layers))
        return [axis for name, layer in named for axis in layer_axes(name, f"{name}.", layer, head_dim)]


def layer_axes(name: str, prefix: str, layer: nn.Module, head_dim: int) -> list[Axis]:
    """Return the axes within a layer: hidden units, and the heads of each attention.

    Args:
        name: the layer's name in messages.
        prefix: prefix of its keys in the state dict.
    """
    state: dict[str, Tensor] = dict(layer.named_parameters())
    hidden = len(state["ffn.fc1.bias"])
    dims = (
        TensorDim(f"{prefix}ffn.fc1.weight", 0),
        TensorDim(f"{prefix}ffn.fc1.bias", 0),
        TensorDim(f"{prefix}ffn.fc2.weight", 1),
    )
    axes = [Axis(f"{name}.ffn", hidden, dims, 1, (f"{prefix}ffn.fc2.weight",))]
    # All attention types of a layer share one order of heads, as they are initialised as copies.
    for attention in ("self_attn", "cross_attn"):
        out = ".out_proj.weight"
        kinds = [n.removesuffix(out) for n in state if n.startswith(f"{attention}.") and n.endswith(out)]
        if not kinds:
            continue
        rows, outs = list[TensorDim](), list[str]()
        for attention_name in kinds:
            joint = [
                (p, n)
                for p, n in (("in_proj", 3), ("q_proj", 1), ("kv_proj", 2))
                if f"{attention_name}.{p}.weight" in state
            ]
            rows += [
                TensorDim(f"{prefix}{attention_name}.{p}.{kind}", 0, blocks)
                for p, blocks in joint
                for kind in ("weight", "bias")
            ]
            outs.append(f"{prefix}{attention_name}{out}")
        size = state[f"{kinds[0]}{out}"].shape[1] // head_dim
        columns = (TensorDim(out, 1) for out in outs)
        axes.append(Axis(f"{name}.{attention}", size, (*rows, *columns), head_dim, tuple(outs)))
    return axes


def channel_dims(
    prefix: str, layer: nn.Module, memory: Sequence[str] = ("kv_proj",)
) -> tuple[list[TensorDim], list[str]]:
    """Return the dimensions of a layer's tensors that are residual channels, and the weights that read them.

    Args:
        memory: names of projections of another sequence, to exclude.
    """
    dims, read_by = list[TensorDim](), list[str]()
    for name, _ in layer.named_parameters():
        owner, _, kind = name.rpartition(".")
        layer_name = owner.rpartition(".")[2]
        if layer_name in memory or name.endswith("relative"):
            continue
        if layer_name in ("in_proj", "q_proj", "fc1"):
            if kind == "weight":
                dims.append(TensorDim(prefix + name, 1))
                read_by.append(prefix + name)
        else:
            assert layer_name in ("out_proj", "fc2") or layer_name.endswith("norm"), f"unknown tensor {name}"
            dims.append(TensorDim(prefix + name, 0))
    return dims, read_by


def stack_channels(net: Any) -> tuple[list[TensorDim], list[str]]:
    """Return the results of :func:`channel_dims` for all layers of a network."""
    layers = [channel_dims(f"layers.{index}.", layer) for index, layer in enumerate(net.layers)]
    return [dimension for dims, _ in layers for dimension in dims], [name for _, read_by in layers for name in read_by]
