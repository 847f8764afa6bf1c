"""Interface and registry of kinds of attention.

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

PLACES = ("encoder", "decoder", "cross", "image")
"""Places in a network: encoder with padding, causal decoder, decoder to encoder, image patches."""


class AttentionState(Protocol):
    """Decoding state of one attention layer, over past positions or the source."""

    def tensors(self) -> tuple[Tensor, ...]:
        """Return all tensors, batch first, as in exported decoding steps."""

    def reorder(self, order: Tensor) -> AttentionState:
        """Return batch rows ``order``, for beam search."""


class KeysValues(NamedTuple):
    """Cached keys and values (B, H, S, D)."""

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
    """Sizes, and names of dynamic dimensions."""
    positive: bool = False
    """The tensor is a divisor: example values must not be near 0."""


class AttentionKind(ABC):
    """Base of kinds of attention between projected queries, keys and values.

    Subclasses are frozen dataclasses with a ``name`` and the kind's settings. A kind with a decoding state other than
    :class:`KeysValues` overrides ``step``, ``after``, ``memory``, ``read``, ``state_values`` and ``restored`` together.
    """

    name: str
    """Name in the registry, and option of the gene."""
    places: ClassVar[tuple[str, ...]] = PLACES
    """Supported :data:`PLACES`."""
    takes_relative: ClassVar[bool] = False
    """It adds relative positions to its keys."""
    reads_positive_parts: ClassVar[bool] = False
    """It applies ReLU to queries and keys; conversion from other kinds needs channels and their negatives."""
    is_bounded: ClassVar[bool] = False
    """It has a maximum length, set by :meth:`scaled` and returned by :attr:`longest`."""
    reads_positions: ClassVar[bool] = False
    """Cross-attention needs the positions of its keys."""
    masks_memory: ClassVar[bool] = True
    """Each decoding step needs the source mask; False if :meth:`memory` excludes padding."""

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
        """Compute attention of ``q`` (B, H, T, D) over ``k``, ``v`` (B, H, S, D): (B, H, T, D).

        A subclass may collect unused keywords in ``**options``.

        Args:
            mask: (B, 1, 1, S) bool, True at readable keys.
            causal: mask later keys; requires T = S.
            relative: (2R + 1, D), vectors of relative positions.
            dropout: probability for the weights.
            key_positions: (B, S) or (S,) for keys of another sequence.
        """

    def weights(self, q: Tensor, k: Tensor, relative: Tensor | None = None) -> Tensor:
        """Return the attention matrix (B, H, N, N) for plots and hooks; rows sum to 1."""
        unit = torch.eye(k.shape[2], dtype=q.dtype, device=q.device).expand(*k.shape[:2], -1, -1)
        return self.attend(q, k, unit, relative=relative)

    def plain(self, q: Tensor, k: Tensor, v: Tensor, relative: Tensor | None = None) -> Tensor:
        """Compute self-attention (B, H, N, D) in operations that exporters and FLOP counters support."""
        return self.attend(q, k, v, relative=relative)

    def scaled(self, max_length: int | None) -> AttentionKind:
        """Return the kind with a maximum length; None: each sequence's own length."""
        return self

    @property
    def longest(self) -> int | None:
        """Maximum length; None: unlimited."""
        return None

    # -- decoding --------------------------------------------------------------------------------------------------

    def step(
        self, q: Tensor, k: Tensor, v: Tensor, past: Any, relative: Tensor | None = None
    ) -> tuple[Tensor, AttentionState]:
        """Compute one position of causal self-attention, (B, H, 1, D), and the new state.

        ``past`` is None at the first position.
        """
        if past is not None:
            k, v = torch.cat([past.keys, k], dim=2), torch.cat([past.values, v], dim=2)
        return self.attend(q, k, v, relative=relative), KeysValues(k, v)

    def after(self, k: Tensor, v: Tensor) -> AttentionState:
        """Return the causal self-attention state after the first S >= 1 keys and values (B, H, S, D)."""
        return KeysValues(k.contiguous(), v.contiguous())  # copies: views would keep the queries alive

    def memory(self, k: Tensor, v: Tensor, mask: Tensor | None, positions: Tensor | None) -> AttentionState:
        """Return the cross-attention state of keys and values (B, H, S, D), computed once per source."""
        return KeysValues(k, v)

    def read(self, q: Tensor, memory: Any, mask: Tensor | None, position: int) -> Tensor:
        """Compute cross-attention of one position's query (B, H, 1, D): (B, H, 1, D)."""
        return self.attend(q, memory.keys, memory.values, mask=mask)

    # -- costs -----------------------------------------------------------------------------------------------------

    def macs(self, queries: int, keys: int, width: int, heads: int, *, causal: bool = False, clip: int = 0) -> int:
        """Count multiply-accumulates without projections; by default of all pairs, masked ones included.

        Args:
            width: H * D.
            clip: largest relative distance, 0 for none.
        """
        return 2 * queries * keys * width

    def held(
        self, batch: int, queries: int, keys: int, width: int, heads: int, clip: int = 0, *, causal: bool = False
    ) -> int:
        """Count peak temporary elements for ``batch`` sequences, without queries, keys, values and outputs.

        ``causal`` includes the temporaries of :meth:`after`. Other arguments as of :meth:`macs`.
        """
        return 0

    def held_for_memory(self, keys: int, width: int) -> tuple[int, int]:
        """Return elements of keys and values, and of temporaries, that :meth:`memory` holds for one sequence."""
        return 0, 0

    def parameters(self, head_dim: int, clip: int = 0) -> int:
        """Count parameters without projections: the relative positions."""
        return (2 * clip + 1) * head_dim if self.takes_relative and clip else 0

    # -- graphs and exported files ---------------------------------------------------------------------------------

    def operation(self, place: str) -> str:
        """Return its operation name in network graphs."""
        return f"{self.name}_cross_attention" if place == "cross" else f"{place}_{self.name}_attention"

    def state_values(self, heads: int, dim: int, length: str) -> tuple[StateValue, ...]:
        """Describe the tensors of a state after ``length`` positions."""
        shape = ("batch", heads, length, dim)
        return StateValue("key", shape), StateValue("value", shape)

    def step_table(self, rows: int) -> Tensor | None:
        """Return constants (rows, n) that an exported step looks up by position; None: not needed."""
        return None

    def restored(self, tensors: Sequence[Tensor], position: Tensor, row: Tensor | None) -> AttentionState:
        """Return an exported step's state from its tensors, position and row of :meth:`step_table`."""
        return KeysValues(*tensors)


KINDS: Registry[AttentionKind] = Registry(
    "kind of attention",
    "nas_ext.attention_kinds",
    {
        "softmax": "nas_core.layers.attention.softmax:SOFTMAX",
        "linear": "nas_core.layers.attention.cosformer.kind:LINEAR",
        "local": "nas_core.layers.attention.local:LOCAL",
    },
    AttentionKind,
)
"""All kinds of attention; the entry point group ``nas_ext.attention_kinds`` adds more."""


def resolve_kind(kind: str | AttentionKind, place: str, max_length: int | None = None) -> AttentionKind:
    """Return the kind for one place of a network, scaled to ``max_length``.

    Raises:
        UnknownChoiceError: unknown kind.
        ConfigError: unsupported place.
    """
    resolved = KINDS.get(kind) if isinstance(kind, str) else kind
    if place not in resolved.places:
        raise ConfigError(
            f"attention {resolved.name!r} does not support place {place!r}; expected one of"
            f" {', '.join(resolved.places)}"
        )
    return resolved.scaled(max_length)
