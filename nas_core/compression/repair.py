"""Repair of a pruned network: refit the output layers of its sublayers by least squares.

In the order of execution, the residual stream after each sublayer is fitted to the trained network's. This compensates
for removed heads, hidden units, channels and following layers.

Shapes: N tokens, I inputs of a linear layer, C channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nas_core.compression.host import Compressible
from nas_core.supernet.teacher.taps import Taps

_SUBLAYERS = (("self_attn", "out_proj"), ("cross_attn", "out_proj"), ("ffn", "fc2"))
"""Sublayers in the order of execution, each with its output layer."""
_ADDITIONS = ("add", "__add__", "__radd__", "add_")


class Sublayer(NamedTuple):
    """Attention or feed-forward sublayer of a network."""

    side: str
    layer: int
    name: str
    linear: Any
    """Output layer, before the residual connection."""
    norm: Any
    """Layer norm."""


class Recorded(NamedTuple):
    """Recorded activations of a sublayer on one batch."""

    inputs: Tensor
    """Inputs (N, I) of its output layer."""
    stream: Tensor
    """Residual stream (N, C) after the sublayer, before the layer norm of a post-norm network."""


class _Done(Exception):
    pass


class _Streams(Taps):
    """Recorder of the residual stream after each sublayer; stops the forward pass after the last one."""

    def __init__(self, sublayers: Sequence[Sublayer]) -> None:
        super().__init__({str(i): sublayer.linear.weight for i, sublayer in enumerate(sublayers)}, True, True)
        self.streams: dict[str, Tensor] = {}
        self._last = len(sublayers)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_function__(func, types, args, kwargs)
        if getattr(func, "__name__", "") in _ADDITIONS:
            for name, outputs in self.outputs.items():
                if name not in self.streams and any(outputs and outputs[-1] is value for value in args[:2]):
                    self.streams[name] = result
                    if len(self.streams) == self._last:
                        raise _Done
        return result


def layers_of(net: Any, side: str) -> Sequence[nn.Module]:
    layers: Sequence[nn.Module] = getattr(net, f"{side}_layers" if side else "layers")
    return layers


def sublayers_of(net: Any, sides: Sequence[str]) -> Iterator[Sublayer]:
    """Yield the sublayers of ``sides`` (encoder, decoder) of a static network in the order of execution."""
    for side in sides:
        for index, layer in enumerate(layers_of(net, side)):
            for name, last in _SUBLAYERS:
                if hasattr(layer, name):
                    linear, norm = getattr(getattr(layer, name), last), getattr(layer, f"{name}_norm")
                    yield Sublayer(side, index, name, linear, norm)


def record(
    trained: Compressible, model: Any, sublayers: Sequence[Sublayer], batches: Sequence[Any]
) -> list[list[Recorded]]:
    """Return the activations of each sublayer on each batch."""
    recorded: list[list[Recorded]] = [[] for _ in sublayers]
    for batch in batches:
        counted = trained.counted(batch)
        with torch.no_grad(), _Streams(sublayers) as streams, suppress(_Done):
            trained.logits(model, batch)
        for index, sublayer in enumerate(sublayers):
            inputs, stream = streams.inputs[str(index)][-1], streams.streams[str(index)]
            mask = counted.get(sublayer.side, torch.ones(stream.shape[:2], dtype=torch.bool, device=stream.device))
            recorded[index].append(Recorded(inputs[mask].detach(), stream[mask].detach()))
    return recorded


class Repair:
    """Refitting of pruned networks to a trained network on calibration batches.

    Args:
        teacher: static network with the trained weights.
        ridge: ridge penalty on changes of the weights, relative to the mean variance of the inputs.
    """

    def __init__(self, trained: Compressible, teacher: Any, batches: Sequence[Any], ridge: float = 1e-3) -> None:
        self._trained, self._batches, self._ridge = trained, batches, ridge
        self._sides = tuple(trained.form.sides(trained.net))
        self._depths = {side: len(layers_of(teacher.net, side)) for side in self._sides}
        self._sublayers = {(s.side, s.layer, s.name): s for s in sublayers_of(teacher.net, self._sides)}
        streams = record(trained, teacher, list(self._sublayers.values()), batches)
        self._targets = {key: [r.stream for r in batch] for key, batch in zip(self._sublayers, streams, strict=True)}

    def __call__(self, model: Any, kept: Mapping[str, Sequence[int]]) -> None:
        """Refit a pruned network, sublayer by sublayer.

        Args:
            kept: side (encoder, decoder) -> indices of the trained network's layers that are kept.
        """
        training = model.training
        model.eval()
        for sublayer in sublayers_of(model.net, self._sides):
            sources = replaced_until(kept[sublayer.side], self._depths[sublayer.side])
            last = sublayer.name == "ffn"
            source = (sources if last else list(kept[sublayer.side]))[sublayer.layer]
            key = sublayer.side, source, sublayer.name
            if last and not getattr(layers_of(model.net, sublayer.side)[sublayer.layer], "norm_first", True):
                _copy_norm(self._sublayers[key].norm, sublayer.norm)
            (recorded,) = record(self._trained, model, [sublayer], self._batches)
            refit(sublayer.linear, recorded, self._targets[key], self._ridge)
        model.train(training)


def replaced_until(kept: Sequence[int], depth: int) -> list[int]:
    """Return for each kept layer the index of the last layer (of ``depth``) before the next kept one."""
    return [following - 1 for following in (*kept[1:], depth)]


def _copy_norm(source: Any, norm: Any) -> None:
    with torch.no_grad():
        for name in ("weight", "bias"):
            tensor = getattr(norm, name)
            tensor.copy_(getattr(source, name)[: len(tensor)])


def refit(linear: Any, recorded: Sequence[Recorded], targets: Sequence[Tensor], ridge: float) -> None:
    """Fit a linear layer by ridge regression so that the residual stream approaches the targets (N, C).

    The change is discarded if it does not reduce the error on held-out batches.
    """
    batches = [
        (r.inputs.double(), (y[:, : r.stream.shape[1]] - r.stream).double())
        for r, y in zip(recorded, targets, strict=True)
    ]
    count = len(batches) // 4
    held_out, fitted = batches[:count] or batches, batches[count:]
    h, y = (torch.cat(column) for column in zip(*fitted, strict=True))
    biased = linear.bias is not None
    means = h.mean(0) * biased, y.mean(0) * biased
    centred = h - means[0]
    products = centred.T @ centred
    products.diagonal().add_(ridge * products.diagonal().mean() + 1e-12)
    change = torch.linalg.solve(products, centred.T @ (y - means[1])).T
    shift = means[1] - change @ means[0]
    before = sum(float(error.square().sum()) for _, error in held_out)
    after = sum(float((error - x @ change.T - shift).square().sum()) for x, error in held_out)
    if after < before:
        with torch.no_grad():
            linear.weight.add_(change.to(linear.weight.dtype))
            if biased:
                linear.bias.add_(shift.to(linear.bias.dtype))
