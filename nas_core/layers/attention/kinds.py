"""Kinds of attention by name, and what each kind says about itself.

The registry :data:`KINDS` holds one object per name; the name is the option of a search space's gene. A network asks
the object and never its name: how it attends and decodes, what it costs, where it may stand, what pictures, graphs and
exported files call it.

Shapes: B batch, T/S target and source length, H heads, D head dim.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.layers.attention.packed import padded, unpadded
from nas_core.layers.modes import is_exporting
from nas_core.registry import Registry

PLACES = ("encoder", "decoder", "cross", "image")
"""Where attention stands: in an encoder with padding, causal in a decoder, from it to the source, over patches."""


class AttentionState(Protocol):
    """What decoding keeps of one attention: of the positions so far, or of the source."""

    def tensors(self) -> tuple[Tensor, ...]:
        """All it holds, the batch first; exported decoding steps take and give these."""

    def reorder(self, order: Tensor) -> AttentionState:
        """Rows ``order`` of the batch, for beams that moved."""


class StateValue(NamedTuple):
    """Name and shape of one tensor of a state in an exported decoding step."""

    name: str
    shape: tuple[int | str, ...]
    """Numbers and names of open dimensions."""
    positive: bool = False
    """Whether it is divided by, so that examples of it must not be near 0."""


class AttentionKind(ABC):
    """One kind of attention between projected queries, keys and values.

    Subclasses are frozen dataclasses whose fields are the kind's settings and its ``name``. What has a default here is
    right for a kind that keeps all keys and values while decoding.
    """

    name: str
    """Under which it is registered, and the option of the gene."""
    places: ClassVar[tuple[str, ...]] = PLACES
    """Those of :data:`PLACES` where it may stand."""
    colour: ClassVar[str] = "#6d6d6d"
    """In pictures, as a web colour."""
    letter: ClassVar[str] = "?"
    """In pictures, for readers who see no colours."""
    takes_relative: ClassVar[bool] = False
    """Whether a table of vectors for distances is added to its keys."""
    reads_positive_parts: ClassVar[bool] = False
    """Whether it sees of queries and keys only what is above 0, so that one that begins from projections of another
    kind needs channels and their negatives."""
    is_bounded: ClassVar[bool] = False
    """Whether it is made for a longest sequence, which :meth:`scaled` gives and :attr:`longest` tells."""
    reads_positions: ClassVar[bool] = False
    """Whether attention to another sequence needs the positions of its keys."""
    masks_memory: ClassVar[bool] = True
    """Whether each decoding step needs the mask of the source; False where :meth:`memory` leaves padding out."""

    # -- settings --------------------------------------------------------------------------------------------------

    def scaled(self, max_length: int | None) -> AttentionKind:
        """The kind for sequences of at most so many positions; None: each sequence's own length."""
        return self

    @property
    def longest(self) -> int | None:
        """Positions it can read; None: any number."""
        return None

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
        """Attention of ``q`` (B, H, T, D) over ``k``, ``v`` (B, H, S, D): (B, H, T, D).

        Args:
            mask: (B, 1, 1, S) bool, True at keys that may be read.
            causal: each position reads itself and earlier ones; T = S.
            relative: (2R + 1, D), vectors of distances, where the kind takes them.
            dropout: on the weights, where the kind has them.
            key_positions: (B, S) or (S,) of another sequence, where the kind reads them.
        """

    @abstractmethod
    def weights(self, q: Tensor, k: Tensor, relative: Tensor | None = None) -> Tensor:
        """How much each position reads of each other, (B, H, N, N) with rows that sum to 1; for pictures and hooks."""

    def plain(self, q: Tensor, k: Tensor, v: Tensor, relative: Tensor | None = None) -> Tensor:
        """Attention of a sequence over itself in plain products, for exporters and counters: (B, H, N, D)."""
        return self.weights(q, k, relative) @ v

    def packed(self, q: Tensor, k: Tensor, v: Tensor, offsets: Tensor, *, causal: bool = False) -> Tensor:
        """Self-attention of sequences one behind the other, ``(L, H, D)``: ``(L, H, D)``.

        Args:
            offsets: ``(B + 1,)``, where each sequence begins, and L.
        """
        tables, mask, at = padded(offsets, q, k, v)
        return unpadded(self.attend(*tables, mask=mask[:, None, None], causal=causal), at)

    # -- decoding --------------------------------------------------------------------------------------------------

    @abstractmethod
    def step(
        self, q: Tensor, k: Tensor, v: Tensor, past: Any, relative: Tensor | None = None
    ) -> tuple[Tensor, AttentionState]:
        """The next position of causal self-attention, each (B, H, 1, D): its output, and the state after it.

        ``past`` is the state before it, None at the first position.
        """

    def after(self, k: Tensor, v: Tensor) -> AttentionState:
        """The state of causal self-attention after keys and values (B, H, S, D) of its first positions, one at least:
        that of as many steps."""
        state: AttentionState | None = None
        for position in range(k.shape[2]):
            here = slice(position, position + 1)
            _, state = self.step(k[:, :, here], k[:, :, here], v[:, :, here], state)
        assert state is not None, "no position"
        return state

    @abstractmethod
    def memory(self, k: Tensor, v: Tensor, mask: Tensor | None, positions: Tensor | None) -> AttentionState:
        """What decoding keeps of another sequence's keys and values (B, H, S, D), made once."""

    @abstractmethod
    def read(self, q: Tensor, memory: Any, mask: Tensor | None, position: int) -> Tensor:
        """The query (B, H, 1, D) of position ``position`` reads that memory: (B, H, 1, D)."""

    # -- costs -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def macs(self, queries: int, keys: int, width: int, heads: int, *, causal: bool = False, clip: int = 0) -> int:
        """Multiply-accumulates between projections, for ``width`` = H * D.

        ``clip`` is the farthest distance of relative positions, 0 for none.
        """

    def held(
        self, batch: int, queries: int, keys: int, width: int, heads: int, clip: int = 0, *, causal: bool = False
    ) -> int:
        """Numbers that attention of ``batch`` whole sequences holds at most beside queries, keys, values and outputs;
        by default none, as where weights are never written out. Other arguments as of :meth:`macs`.

        Args:
            causal: of sequences whose positions read only earlier ones, with what :meth:`after` makes of them.
        """
        return 0

    def held_for_memory(self, keys: int, width: int) -> tuple[int, int]:
        """Numbers held beside what :meth:`memory` makes of one sequence: keys and values that are not part of it, and
        what else is held while it is made. None by default, as where it only keeps what it gets."""
        return 0, 0

    def parameters(self, head_dim: int, clip: int = 0) -> int:
        """Numbers that are learned beside the projections: the table of distances."""
        return (2 * clip + 1) * head_dim if self.takes_relative and clip else 0

    # -- names and exported files ----------------------------------------------------------------------------------

    def operation(self, place: str) -> str:
        """The name of its node in graphs of networks."""
        return f"{self.name}_cross_attention" if place == "cross" else f"{place}_{self.name}_attention"

    def state_values(self, heads: int, dim: int, length: str) -> tuple[StateValue, ...]:
        """The tensors of the state of self-attention after ``length`` positions."""
        shape = ("batch", heads, length, dim)
        return StateValue("key", shape), StateValue("value", shape)

    def memory_values(self, heads: int, dim: int, length: str) -> tuple[StateValue, ...]:
        """The tensors of the memory of another sequence of that length."""
        return self.state_values(heads, dim, length)

    def step_table(self, rows: int) -> Tensor | None:
        """Constants (rows, n) of which an exported step looks up the row of its position; None: it needs none."""
        return None

    @abstractmethod
    def restored(self, tensors: Sequence[Tensor], position: Tensor, row: Tensor | None) -> AttentionState:
        """The state that an exported step is given as tensors, at a position that is a tensor too.

        ``row`` is what stands in :meth:`step_table` for that position.
        """

    def restored_memory(self, tensors: Sequence[Tensor], position: Tensor, row: Tensor | None) -> AttentionState:
        """The same of another sequence's memory."""
        return self.restored(tensors, position, row)


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
"""Every kind of attention; one of another distribution is an entry point of the group ``nas_ext.attention_kinds``."""


def placed(kind: str | AttentionKind, place: str, max_length: int | None = None) -> AttentionKind:
    """The kind as it stands in a network: by name or with settings, scaled for sequences of that length.

    Raises:
        UnknownChoiceError: there is no such kind. ConfigError: it may not stand there, or has another name.
    """
    found = KINDS.get(kind) if isinstance(kind, str) else kind
    if isinstance(kind, str) and found.name != kind:
        raise ConfigError(f"kind of attention {kind!r} calls itself {found.name!r}; register it under its own name")
    if place not in found.places:
        raise ConfigError(
            f"attention {found.name!r} may not stand in place {place!r}; it may in {', '.join(found.places)}"
        )
    return found.scaled(max_length)


def exporting() -> bool:
    """Whether an exporter or tracer is following the computation."""
    tracing: bool = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    return torch.onnx.is_in_onnx_export() or is_exporting() or tracing
