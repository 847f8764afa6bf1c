"""Export of decoding steps, whose inputs and outputs include decoding states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from nas_core.export.parts import Value
from nas_core.layers.attention.kinds import AttentionKind, AttentionState, StateValue
from nas_core.layers.attention.projections import CrossAttentionWeights, SelfAttentionWeights
from nas_core.models.static import SubnetModule

Weights = SelfAttentionWeights | CrossAttentionWeights


class StepTables(SubnetModule):
    """Base class of exported decoding steps, with the constants that attention looks up by position."""

    def _add_tables(self, kinds: Sequence[AttentionKind], rows: int) -> None:
        self.kinds = list(dict.fromkeys(kinds))
        for index, kind in enumerate(self.kinds):
            self.register_buffer(f"table_{index}", kind.step_table(rows), persistent=False)

    def _restored(self, weights: Weights, tensors: Iterator[Tensor], position: Tensor) -> AttentionState:
        table = getattr(self, f"table_{self.kinds.index(weights.kind)}")
        row = None if table is None else F.embedding(position, table)
        return weights.kind.restored([next(tensors) for _ in _described(weights)], position, row)


def flat(states: Sequence[AttentionState | None]) -> list[Tensor]:
    return [tensor for state in states if state is not None for tensor in state.tensors()]


def _described(weights: Weights, length: str = "past") -> tuple[StateValue, ...]:
    dim = weights.out_proj.weight.shape[1] // weights.heads
    return weights.kind.state_values(weights.heads, dim, length)


def state_values(name: str, layer: int, weights: Weights, length: str = "past") -> list[Value]:
    """Describe the tensors of a layer's decoding state.

    Args:
        name: ``self`` or ``cross``.
        length: name of the dimension of past or source positions.
    """
    return [
        Value(f"{name}_{value.name}_{layer}", value.shape, "positive" if value.positive else "number")
        for value in _described(weights, length)
    ]


def next_values(past: Sequence[Value]) -> list[Value]:
    """Describe the decoding states one position later."""
    return [
        replace(v, name=f"next_{v.name}", shape=tuple("past + 1" if dim == "past" else dim for dim in v.shape))
        for v in past
    ]


def cache_info(past: Sequence[Value]) -> list[dict[str, Any]]:
    """Return names and initial shapes of decoding states, for an external decoding loop."""
    return [
        {"input": v.name, "output": f"next_{v.name}", "start": [0 if dim == "past" else dim for dim in v.shape]}
        for v in past
    ]
