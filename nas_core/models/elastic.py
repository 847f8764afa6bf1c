"""What a kind of network says about itself so that a trained network can become its largest subnet.

Smaller networks use the first heads, hidden units and channels of each layer. These may be put in any other order
without changing what the whole network computes, as long as all tensors that share them follow: an :class:`Axis` lists
those. Shapes: see the networks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from torch import Tensor, nn


@dataclass(frozen=True)
class Part:
    """Where an axis lies in one tensor of a network's state."""

    name: str
    """Name in the state dict."""
    dim: int
    """Dimension along which it lies."""
    blocks: int = 1
    """Copies of the axis one behind the other, as queries, keys and values in a joint projection."""


@dataclass(frozen=True)
class Axis:
    """Heads, hidden units or channels that may change their order, and all tensors that then change with them."""

    name: str
    """What it is of, for people and for scores: ``encoder.layers.2.ffn``."""
    size: int
    """How many there are."""
    parts: tuple[Part, ...]
    """Every tensor that lies along it."""
    unit: int = 1
    """Numbers of each in a tensor: the head dimension of heads, else 1."""
    read_by: tuple[str, ...] = ()
    """Names of the weights (out, in) of linear layers whose inputs lie along the axis: what is measured as its
    activation."""


class ElasticForm(Protocol):
    """What a kind of network offers, one object in ``nas_core.models.<kind>.elastic``."""

    def sides(self, net: Any) -> dict[str, int]:
        """Each side of the network with its number of layers: ``{"encoder": 6, "decoder": 6}``, ``{"": 12}``."""

    def axes(self, net: Any) -> tuple[Axis, ...]:
        """Everything of which smaller networks use the first ones."""

    def running(self, net: Any, subnet: Any, kept: Mapping[str, Sequence[int]]) -> Any:
        """The subnet of all layers with those layers of each side alone, by their index; sides that are not named
        keep all. It is only run, and lies in no space."""

    def set_order(self, net: Any, order: Mapping[str, Sequence[int]]) -> None:
        """Let shallower networks leave out the last layers of this order of each side first."""


class StackForm:
    """The form of networks with one stack of layers, which is the side ``""``; ``axes`` are the kind's."""

    def sides(self, net: Any) -> dict[str, int]:
        return {"": len(net.layers)}

    def running(self, net: Any, subnet: Any, kept: Mapping[str, Sequence[int]]) -> Any:
        if "" not in kept:
            return subnet
        return subnet._replace(layers=tuple(subnet.layers[index] for index in sorted(kept[""])))

    def set_order(self, net: Any, order: Mapping[str, Sequence[int]]) -> None:
        if "" in order:
            net.config = replace(net.config, layer_order=tuple(order[""]))

    def _layer_axes(self, net: Any) -> list[Axis]:
        """Hidden units and heads of each layer."""
        head_dim = net.space.largest().number("head_dim")
        named = ((f"layers.{index}", layer) for index, layer in enumerate(net.layers))
        return [axis for name, layer in named for axis in layer_axes(name, f"{name}.", layer, head_dim)]


def layer_axes(name: str, prefix: str, layer: nn.Module, head_dim: int) -> list[Axis]:
    """The axes within one encoder, decoder or image layer: its hidden units and the heads of each attention, which have
    one order in all kinds among which the layer chooses, as these begin as copies of each other.

    Args:
        name: of the layer, for people.
        prefix: of its tensors in the state dict, with a dot at the end.
        layer: one of :mod:`nas_core.layers.transformer` or :mod:`nas_core.layers.vision` without experts.
        head_dim: D.
    """
    state: dict[str, Tensor] = dict(layer.named_parameters())
    hidden = len(state["ffn.fc1.bias"])
    parts = (Part(f"{prefix}ffn.fc1.weight", 0), Part(f"{prefix}ffn.fc1.bias", 0), Part(f"{prefix}ffn.fc2.weight", 1))
    axes = [Axis(f"{name}.ffn", hidden, parts, 1, (f"{prefix}ffn.fc2.weight",))]
    for attention in ("self_attn", "cross_attn"):
        kinds = [found.removesuffix(".out_proj.weight") for found in state
                 if found.startswith(f"{attention}.") and found.endswith(".out_proj.weight")]  # fmt: skip
        if not kinds:
            continue
        rows, outs = list[Part](), list[str]()
        for at in kinds:
            joint = [(p, n) for p, n in (("in_proj", 3), ("q_proj", 1), ("kv_proj", 2)) if f"{at}.{p}.weight" in state]
            rows += [Part(f"{prefix}{at}.{p}.{kind}", 0, blocks) for p, blocks in joint for kind in ("weight", "bias")]
            outs.append(f"{prefix}{at}.out_proj.weight")
        size = state[f"{kinds[0]}.out_proj.weight"].shape[1] // head_dim
        columns = (Part(out, 1) for out in outs)
        axes.append(Axis(f"{name}.{attention}", size, (*rows, *columns), head_dim, tuple(outs)))
    return axes


def channel_parts(prefix: str, layer: nn.Module, memory: Sequence[str] = ("kv_proj",)) -> tuple[list[Part], list[str]]:
    """The tensors of a layer along the channels of its residual stream, and the weights that read them.

    ``memory`` names projections that read another stream and are left out.
    """
    parts, read_by = list[Part](), list[str]()
    for name, tensor in layer.named_parameters():
        owner, _, kind = name.rpartition(".")
        last = owner.rpartition(".")[2]
        if last in memory or name.endswith("relative"):
            continue
        if last in ("in_proj", "q_proj", "fc1"):
            if kind == "weight":
                parts.append(Part(prefix + name, 1))
                read_by.append(prefix + name)
        elif last in ("out_proj", "fc2") or last.endswith("norm"):
            parts.append(Part(prefix + name, 0))
        elif tensor.ndim:
            raise AssertionError(f"no place for {name} along the channels")
    return parts, read_by


def stack_channels(net: Any) -> tuple[list[Part], list[str]]:
    """What :func:`channel_parts` gives of all layers of a network with one stack."""
    found = [channel_parts(f"layers.{index}.", layer) for index, layer in enumerate(net.layers)]
    return [part for parts, _ in found for part in parts], [name for _, read_by in found for name in read_by]
