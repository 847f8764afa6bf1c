"""Recording of inputs and outputs of attention layers on calibration data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.layers.attention.kinds import AttentionKind
from nas_core.layers.attention.projections import (
    CrossAttentionWeights,
    SelfAttentionWeights,
    cross_attention,
    cross_keys_values,
    self_attention,
)
from nas_core.supernet.teacher.taps import Taps

AttentionWeights = SelfAttentionWeights | CrossAttentionWeights
TreePath = tuple[str | int, ...]
"""Path in the nested tuples of a subnet, such as ``("encoder_layers", 3, "self_attn")``."""


class Recorded(NamedTuple):
    """Inputs and output of one attention layer on one batch."""

    x: Tensor
    """``(B, T, C)``, input of queries, and of keys and values in self-attention."""
    memory: Tensor | None
    """``(B, S, C)``, input of keys and values in cross-attention."""
    mask: Tensor | None
    """``(B, 1, 1, S)``, False at masked keys."""
    causal: bool
    key_positions: Tensor | None
    output: Tensor
    """``(B, T, C)``, after the output projection."""
    loss_mask: Tensor
    """``(B, T)``, True at positions that affect the loss."""


def attentions_of(subnet: Any, path: TreePath = ()) -> Iterator[tuple[TreePath, AttentionWeights]]:
    """Yield path and weights of each attention of a subnet."""
    if isinstance(subnet, SelfAttentionWeights | CrossAttentionWeights):
        yield path, subnet
    elif isinstance(subnet, tuple | list):
        names: Sequence[str | int] = getattr(subnet, "_fields", range(len(subnet)))
        for name, child in zip(names, subnet, strict=True):
            yield from attentions_of(child, (*path, name))


def compute_attention(weights: AttentionWeights, recorded: Recorded) -> Tensor:
    """Return the output ``(B, T, C)`` of attention with these weights on recorded inputs."""
    if isinstance(weights, SelfAttentionWeights):
        return self_attention(recorded.x, weights, recorded.mask, 0.0, recorded.causal)
    assert recorded.memory is not None
    pair = cross_keys_values(recorded.memory, weights)
    return cross_attention(recorded.x, pair, weights, recorded.mask, 0.0, recorded.key_positions)


def record(
    subnet: Any,
    path: TreePath,
    others: Sequence[AttentionKind],
    batches: Iterable[Any],
    loss: Callable[[Any, Any], Tensor],
) -> list[Recorded]:
    """Record one attention layer of a subnet on each batch.

    Args:
        others: attention mechanisms that will use the recorded inputs.
        loss: function from the subnet and a batch to the loss. Positions with zero gradient are not counted.
    """
    label = ".".join(map(str, path))
    weights = dict(attentions_of(subnet))[path]
    recorder = _RecordingKind(weights.kind, others)
    recorded_subnet = _replace_at(subnet, path, weights._replace(kind=cast(AttentionKind, recorder)))
    reads = [weights.in_proj] if isinstance(weights, SelfAttentionWeights) else [weights.q_proj, weights.kv_proj]
    names = {str(number): affine.weight for number, affine in enumerate([*reads, weights.out_proj])}
    recorded = []
    for batch in batches:
        recorder.calls.clear()
        with torch.enable_grad(), Taps(names, inputs=True, outputs=True) as taps:
            value = loss(recorded_subnet, batch)
        outputs = taps.outputs.get(str(len(reads)), [])
        if len(outputs) != 1 or len(recorder.calls) != 1:
            raise ConfigError(
                f"the loss runs attention {label} {len(outputs)} times; expected a loss that runs the network once"
            )
        (gradient,) = torch.autograd.grad(value, outputs, allow_unused=True) if value.requires_grad else (None,)
        if gradient is None:
            raise ConfigError(f"the loss does not depend on attention {label}; give a loss of the network's output")
        inputs = [taps.inputs[name][0].detach() for name in list(names)[: len(reads)]]
        (call,) = recorder.calls
        recorded.append(
            Recorded(
                inputs[0],
                inputs[1] if len(inputs) > 1 else None,
                call["mask"],
                call["causal"],
                call["key_positions"],
                outputs[0].detach(),
                gradient.ne(0).any(-1),
            )
        )
    return recorded


class _RecordingKind:
    """Attention mechanism that records its calls. Its limits are those of all mechanisms."""

    def __init__(self, kind: AttentionKind, others: Sequence[AttentionKind]) -> None:
        self._kind = kind
        self.calls: list[dict[str, Any]] = []
        self.reads_positions = any(k.reads_positions for k in (kind, *others))
        limits = [k.max_length for k in (kind, *others) if k.max_length is not None]
        self.max_length = min(limits, default=None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kind, name)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        self.calls.append(options)
        return self._kind.attend(q, k, v, **options)


def _replace_at(value: Any, path: TreePath, replacement: Any) -> Any:
    if not path:
        return replacement
    first, *rest = path
    if hasattr(value, "_fields"):
        return value._replace(**{str(first): _replace_at(getattr(value, str(first)), tuple(rest), replacement)})
    return type(value)(
        _replace_at(item, tuple(rest), replacement) if index == first else item for index, item in enumerate(value)
    )
