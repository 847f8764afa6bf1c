"""Repair of a pruned network: refit the output layers of its sublayers by least squares.

In the order of execution, the residual stream after each sublayer is fitted to the trained network's. This compensates
for removed heads, hidden units, channels and following layers.

Shapes: N tokens, I inputs of a linear layer, C channels.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.compression.host import Compressible
from nas_core.supernet.teacher.taps import Taps

_SUBLAYERS = (("self_attn", "out_proj"), ("cross_attn", "out_proj"), ("ffn", "fc2"))
"""Sublayers in the order of execution, each with its output layer."""
_RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
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


class _AllRecorded(Exception):
    pass


class _Streams(Taps):
    """Function mode that passes the residual stream after each sublayer to a function, and stops after the last one.

    Args:
        hook: function (index of the sublayer, inputs of its output layer, stream) -> stream to continue with.
    """

    def __init__(self, sublayers: Sequence[Sublayer], hook: Callable[[int, Tensor, Tensor], Tensor]) -> None:
        super().__init__({str(i): sublayer.linear.weight for i, sublayer in enumerate(sublayers)}, True, True)
        self._after, self._waiting = hook, {str(i) for i in range(len(sublayers))}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_function__(func, types, args, kwargs)
        if getattr(func, "__name__", "") in _ADDITIONS:
            for name in [*self._waiting]:
                outputs = self.outputs[name]
                if any(outputs and outputs[-1] is value for value in args[:2]):
                    self._waiting.remove(name)
                    result = self._after(int(name), self.inputs[name][-1], result)
                    self.inputs[name].clear()
                    outputs.clear()
                    if not self._waiting:
                        raise _AllRecorded
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

        def after(index: int, inputs: Tensor, residual: Tensor, batch: Any = batch) -> Tensor:
            recorded[index].append(_mask_tokens(trained, batch, sublayers[index], inputs, residual))
            return residual

        _run(trained, model, batch, sublayers, after)
    return recorded


def _run(trained: Compressible, model: Any, batch: Any, sublayers: Sequence[Sublayer], hook: Any) -> None:
    with torch.no_grad(), suppress(_AllRecorded), _Streams(sublayers, hook):
        trained.logits(model, batch)


def _mask_tokens(trained: Compressible, batch: Any, sublayer: Sublayer, inputs: Tensor, stream: Tensor) -> Recorded:
    mask = trained.token_masks(batch).get(sublayer.side)
    mask = torch.ones(stream.shape[:2], dtype=torch.bool, device=stream.device) if mask is None else mask
    return Recorded(inputs[mask].detach(), stream[mask].detach())


class Repair:
    """Refitting of pruned networks to a trained network on calibration batches.

    Args:
        teacher: static network with the trained weights.
        ridges: ridge penalties on changes of the weights to select from, relative to the mean variance of the inputs.
    """

    def __init__(
        self, trained: Compressible, teacher: Any, batches: Sequence[Any], ridges: Sequence[float] = _RIDGES
    ) -> None:
        self._trained, self._batches, self._ridges = trained, batches, ridges
        self._sides = tuple(trained.form.sides(trained.net))
        self._depths = {side: len(layers_of(teacher.net, side)) for side in self._sides}
        self._sublayers = {(s.side, s.layer, s.name): s for s in sublayers_of(teacher.net, self._sides)}
        streams = record(trained, teacher, list(self._sublayers.values()), batches)
        self._targets = {key: [r.stream for r in batch] for key, batch in zip(self._sublayers, streams, strict=True)}

    def __call__(self, model: Any, kept: Mapping[str, Sequence[int]]) -> None:
        """Refit a pruned network, sublayer by sublayer, in one pass of all batches.

        Args:
            kept: side (encoder, decoder) -> indices of the trained network's layers that are kept.
        """
        training = model.training
        model.eval()
        sublayers = list(sublayers_of(model.net, self._sides))
        sources = [self._source(sublayer, kept) for sublayer in sublayers]
        for sublayer, source in zip(sublayers, sources, strict=True):
            norm_first = getattr(layers_of(model.net, sublayer.side)[sublayer.layer], "norm_first", True)
            if sublayer.name == "ffn" and not norm_first:
                _copy_norm(self._sublayers[source].norm, sublayer.norm)
        recorded: list[Any] = [None] * len(self._batches)
        changes: list[tuple[Tensor, Tensor] | None] = []

        def refit_next() -> None:
            index = len(changes)
            changes.append(refit(sublayers[index].linear, recorded, self._targets[sources[index]], self._ridges))

        # A sublayer is refitted when the passes of all batches, one thread each, have arrived there.
        barrier, compute_lock = threading.Barrier(len(self._batches), refit_next), threading.Lock()

        def run(number: int) -> None:
            batch = self._batches[number]

            def after(index: int, inputs: Tensor, stream: Tensor) -> Tensor:
                recorded[number] = _mask_tokens(self._trained, batch, sublayers[index], inputs, stream)
                compute_lock.release()
                try:
                    barrier.wait()
                finally:
                    compute_lock.acquire()
                change = changes[index]
                return stream if change is None else stream + F.linear(inputs, *change)

            try:
                with compute_lock:
                    _run(self._trained, model, batch, sublayers, after)
            except BaseException:
                barrier.abort()
                raise

        with ThreadPoolExecutor(len(self._batches)) as pool:
            errors = [future.exception() for future in [pool.submit(run, i) for i in range(len(self._batches))]]
        for error in sorted(filter(None, errors), key=lambda e: isinstance(e, threading.BrokenBarrierError)):
            raise error  # the cause, not the other threads' broken barriers
        model.train(training)

    def _source(self, sublayer: Sublayer, kept: Mapping[str, Sequence[int]]) -> tuple[str, int, str]:
        """Return the trained network's sublayer whose residual stream a sublayer is fitted to."""
        layers = kept[sublayer.side]
        if sublayer.name == "ffn":
            layers = last_replaced(layers, self._depths[sublayer.side])
        return sublayer.side, layers[sublayer.layer], sublayer.name


def last_replaced(layers: Sequence[int], depth: int) -> list[int]:
    """Return for each kept layer the index of the last layer (of ``depth``) before the next kept one."""
    return [next_layer - 1 for next_layer in (*layers[1:], depth)]


def _copy_norm(source: Any, norm: Any) -> None:
    with torch.no_grad():
        for name in ("weight", "bias"):
            tensor = getattr(norm, name)
            tensor.copy_(getattr(source, name)[: len(tensor)])


def refit(
    linear: Any, recorded: Sequence[Recorded], targets: Sequence[Tensor], ridges: Sequence[float]
) -> tuple[Tensor, Tensor] | None:
    """Fit a linear layer by ridge regression so that the residual stream approaches the targets (N, C).

    The first quarter of the tokens is held out: it selects the penalty, so that few calibration samples do no harm.

    Returns:
        Change of weight and bias; None if it did not reduce the held-out error and was discarded.
    """
    h = torch.cat([r.inputs for r in recorded]).double()
    y = torch.cat([t[:, : r.stream.shape[1]] - r.stream for r, t in zip(recorded, targets, strict=True)]).double()
    count = len(h) // 4
    held_out, held_out_targets, h, y = h[:count], y[:count], h[count:], y[count:]
    biased = linear.bias is not None
    means = h.mean(0) * biased, y.mean(0) * biased
    centered = h - means[0]
    products, right = centered.T @ centered, centered.T @ (y - means[1])
    best, best_error = None, float(held_out_targets.square().sum())
    for ridge in ridges:
        penalty = torch.full_like(means[0], ridge * float(products.diagonal().mean()) + 1e-12).diag()
        change = torch.linalg.solve(products + penalty, right).T
        shift = means[1] - change @ means[0]
        error = float((held_out_targets - held_out @ change.T - shift).square().sum())
        if error < best_error:
            best, best_error = (change, shift), error
    if best is None:
        return None
    change, shift = (tensor.to(linear.weight.dtype) for tensor in best)
    with torch.no_grad():
        linear.weight.add_(change)
        if biased:
            linear.bias.add_(shift)
    return change, shift
