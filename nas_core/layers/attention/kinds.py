"""Interface and registry of attention mechanisms.

Shapes: B batch, T/S target and source length, H heads, D head dim.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.registry import Registry

ROLES = ("encoder", "decoder", "cross", "image")
"""Roles of attention in a network: encoder with padding, causal decoder, decoder to encoder, image patches."""


class AttentionState(Protocol):
    """Decoding state of one attention layer, such as cached keys and values."""

    def tensors(self) -> tuple[Tensor, ...]:
        """Return all tensors of the state. The first dimension is the batch."""

    def reorder(self, order: Tensor) -> AttentionState:
        """Return the state of the batch rows ``order``, for beam search."""


class KeysValues(NamedTuple):
    """Cached keys and values ``(B, H, S, D)``."""

    keys: Tensor
    values: Tensor

    def tensors(self) -> tuple[Tensor, ...]:
        return self.keys, self.values

    def reorder(self, order: Tensor) -> KeysValues:
        return KeysValues(self.keys.index_select(0, order), self.values.index_select(0, order))


class StateValue(NamedTuple):
    """Name and shape of one state tensor in an exported decoding step."""

    name: str
    shape: tuple[int | str, ...]
    """Size of each dimension, or the name of a dynamic dimension."""
    positive: bool = False
    """True if example values must not be near 0, as the tensor is a divisor."""


class AttentionKind(ABC):
    """Base class of attention mechanisms, applied to projected queries, keys and values.

    Subclasses are frozen dataclasses. A subclass with a decoding state other than :class:`KeysValues` overrides
    ``step``, ``state_after``, ``memory``, ``read``, ``state_values`` and ``restored``.
    """

    name: str
    """Name in the registry, and option of attention genes."""
    roles: ClassVar[tuple[str, ...]] = ROLES
    """Supported roles, a subset of :data:`ROLES`."""
    takes_relative: ClassVar[bool] = False
    """True if relative positions are added to keys."""
    reads_positive_parts: ClassVar[bool] = False
    """True if ReLU is applied to queries and keys."""
    is_bounded: ClassVar[bool] = False
    """True if there is a maximum length, set by :meth:`scaled`."""
    reads_positions: ClassVar[bool] = False
    """True if cross-attention needs the positions of keys."""
    masks_memory: ClassVar[bool] = True
    """True if decoding steps need the source mask; False if :meth:`memory` excludes padding."""

    # -- whole sequences -------------------------------------------------------------------------------------------

    @abstractmethod
    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        relative: Tensor | None = None,
        dropout: float = 0.0,
        key_positions: Tensor | None = None,
    ) -> Tensor:
        """Compute attention ``(B, H, T, D)`` of ``q`` ``(B, H, T, D)`` over ``k``, ``v`` ``(B, H, S, D)``.

        Subclasses may collect unused arguments in ``**options``.

        Args:
            mask: ``(B, 1, 1, S)`` bool, False at masked keys.
            causal: mask later keys. Requires T = S.
            relative: embeddings of relative positions ``(2R + 1, D)``.
            dropout: dropout probability of the attention weights.
            key_positions: ``(B, S)`` or ``(S,)``, for keys of another sequence.
        """

    def weights(self, q: Tensor, k: Tensor, relative: Tensor | None = None) -> Tensor:
        """Return the attention matrix ``(B, H, N, N)`` for plots and hooks. Its rows sum to 1."""
        unit = torch.eye(k.shape[2], dtype=q.dtype, device=q.device).expand(*k.shape[:2], -1, -1)
        return self.attend(q, k, unit, relative=relative)

    def plain(self, q: Tensor, k: Tensor, v: Tensor, relative: Tensor | None = None) -> Tensor:
        """Compute self-attention ``(B, H, N, D)`` with operations that exporters and FLOP counters support."""
        return self.attend(q, k, v, relative=relative)

    def scaled(self, max_length: int | None) -> AttentionKind:
        """Return this mechanism with a maximum length. None means each sequence's own length."""
        return self

    @property
    def max_length(self) -> int | None:
        """Maximum length, or None without a limit."""
        return None

    # -- decoding --------------------------------------------------------------------------------------------------

    def step(
        self, q: Tensor, k: Tensor, v: Tensor, past: Any, relative: Tensor | None = None
    ) -> tuple[Tensor, AttentionState]:
        """Compute causal self-attention of one position ``(B, H, 1, D)``, and the new decoding state.

        Args:
            past: state after earlier positions. None at the first position.
        """
        if past is not None:
            k, v = torch.cat([past.keys, k], dim=2), torch.cat([past.values, v], dim=2)
        return self.attend(q, k, v, relative=relative), KeysValues(k, v)

    def state_after(self, k: Tensor, v: Tensor) -> AttentionState:
        """Return the decoding state of causal self-attention after S >= 1 positions ``(B, H, S, D)``."""
        return KeysValues(k.contiguous(), v.contiguous())  # copies: views would keep the queries alive

    def memory(self, k: Tensor, v: Tensor, mask: Tensor | None, positions: Tensor | None) -> AttentionState:
        """Return the decoding state of cross-attention for source keys and values ``(B, H, S, D)``."""
        return KeysValues(k, v)

    def read(self, q: Tensor, memory: Any, mask: Tensor | None, position: int) -> Tensor:
        """Compute cross-attention ``(B, H, 1, D)`` of the query of one position.

        Args:
            memory: result of :meth:`memory`.
        """
        return self.attend(q, memory.keys, memory.values, mask=mask)

    # -- costs -----------------------------------------------------------------------------------------------------

    def macs(self, queries: int, keys: int, width: int, heads: int, *, causal: bool = False, clip: int = 0) -> int:
        """Count multiply-accumulate operations without projections.

        Args:
            width: H * D.
            clip: largest relative distance. 0 without relative positions.
        """
        return 2 * queries * keys * width

    def temporary_numel(
        self, batch: int, queries: int, keys: int, width: int, heads: int, clip: int = 0, *, causal: bool = False
    ) -> int:
        """Count elements of temporary tensors at their peak, without queries, keys, values and outputs.

        For other arguments, see :meth:`macs`.

        Args:
            causal: include temporary tensors of :meth:`state_after`.
        """
        return 0

    def extra_memory(self, keys: int, width: int) -> tuple[int, int]:
        """Count elements of keys and values that :meth:`memory` does not keep, and of its temporary tensors."""
        return 0, 0

    def parameters(self, head_dim: int, clip: int = 0) -> int:
        """Count parameters without projections: those of relative positions."""
        return (2 * clip + 1) * head_dim if self.takes_relative and clip else 0

    # -- graphs and exported files ---------------------------------------------------------------------------------

    def operation(self, role: str) -> str:
        """Return the name of the operation in network graphs. ``role`` is one of :data:`ROLES`."""
        return f"{self.name}_cross_attention" if role == "cross" else f"{role}_{self.name}_attention"

    def state_values(self, heads: int, dim: int, length: str) -> tuple[StateValue, ...]:
        """Describe the tensors of a decoding state. ``length`` names the dimension of past positions."""
        shape = ("batch", heads, length, dim)
        return StateValue("key", shape), StateValue("value", shape)

    def step_table(self, rows: int) -> Tensor | None:
        """Return constants ``(rows, n)`` of exported decoding steps, one row per position, or None."""
        return None

    def restored(self, tensors: Sequence[Tensor], position: Tensor, row: Tensor | None) -> AttentionState:
        """Create the decoding state of an exported step. ``row`` is row ``position`` of :meth:`step_table`."""
        return KeysValues(*tensors)


ATTENTION_KINDS: Registry[AttentionKind] = Registry(
    "kind of attention",
    "nas_ext.attention_kinds",
    {
        "softmax": "nas_core.layers.attention.softmax:SOFTMAX",
        "linear": "nas_core.layers.attention.cosformer.kind:LINEAR",
    },
    AttentionKind,
)
"""Registry of attention mechanisms. The entry point group ``nas_ext.attention_kinds`` adds more."""


def resolve_kind(kind: str | AttentionKind, role: str, max_length: int | None = None) -> AttentionKind:
    """Return the attention mechanism for one role of attention.

    Args:
        role: one of :data:`ROLES`.
        max_length: argument of :meth:`AttentionKind.scaled`.

    Raises:
        UnknownChoiceError: the name is unknown.
        ConfigError: the mechanism does not support the role.
    """
    resolved = ATTENTION_KINDS.get(kind) if isinstance(kind, str) else kind
    if role not in resolved.roles:
        raise ConfigError(
            f"attention {resolved.name!r} does not support {role} attention, only {', '.join(resolved.roles)}; give"
            " another type of attention"
        )
    return resolved.scaled(max_length)
