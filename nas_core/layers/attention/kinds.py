"""Which kinds of attention a layer may use: each has weights of its own, and a subnet takes one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from nas_core.errors import unknown_choice
from nas_core.layers.attention.softmax import ATTENTION

__all__ = ["one_or_several", "select_kind"]


def one_or_several(kinds: Sequence[str], make: Callable[[str], nn.Module]) -> nn.Module:
    """The attention of that kind itself, or several of them by name; so a static subnet has no names of kinds in its
    parameters.

    Raises:
        UnknownChoiceError: no such kind.
    """
    for kind in kinds:
        if kind not in ATTENTION:
            raise unknown_choice("kind of attention", kind, ATTENTION)
    return make(kinds[0]) if len(kinds) == 1 else nn.ModuleDict({kind: make(kind) for kind in kinds})


def select_kind(attention: nn.Module, kind: str, *sizes: Any) -> Any:
    """``select`` of the attention of that kind."""
    chosen: Any = attention[kind] if isinstance(attention, nn.ModuleDict) else attention
    return chosen.select(*sizes)
