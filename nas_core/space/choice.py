"""What can be chosen: one gene and its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nas_core.errors import SpaceError
from nas_core.space.architecture import Option

MOST_LAYERS = 1_000
"""Layers of a gene at most; more is a slip of the pen, which would take memory without end."""
MOST_OPTIONS = 32_767
"""Options of a layer at most: rows hold their indices as numbers of 16 bits."""
MOST_IN_ALL = 1_000_000
"""Options of all layers of a gene at most."""
LARGEST_CODE = 1e30
"""Up to which an option is a number of encodings, which have 32 bits."""


@dataclass(frozen=True)
class Choice:
    """One gene: a name and the options it may take, for the whole network or anew for each layer."""

    name: str
    """Gene name, by convention ``side.what``: ``encoder.embed_dim``, ``decoder.ffn_dim``."""
    options: tuple[tuple[Option, ...], ...]
    """Options of each layer (one row for a gene of the whole network), in the order in which they are drawn."""
    per: str | None = None
    """Name of the depth gene this one is repeated by, or None."""
    codes: tuple[tuple[Option, float], ...] = ()
    """(option, number) pairs for encodings and smallest/largest; default: the number itself, a name's position."""
    scale: float = 0.0
    """Encodings divide by this; 0 takes the largest code."""

    def __post_init__(self) -> None:
        if not self.options or any(not row for row in self.options):
            raise SpaceError(f"choice {self.name!r} has no options; give at least one")
        if (count := sum(map(len, self.options))) > MOST_IN_ALL:
            raise SpaceError(f"choice {self.name!r} has {count} options of all layers; expected {MOST_IN_ALL} at most")
        for row in self.options:
            if len(row) > MOST_OPTIONS:
                raise SpaceError(f"choice {self.name!r} has {len(row)} options; expected {MOST_OPTIONS} at most")
            for option in row:
                if isinstance(option, bool) or not isinstance(option, int | float | str) or option != option:
                    raise SpaceError(f"choice {self.name!r} has option {option!r}; expected a number or a name")
            if len(set(row)) != len(row):
                raise SpaceError(f"choice {self.name!r} lists an option twice: {list(row)}")
        if self.per is None and len(self.options) != 1:
            raise SpaceError(f"choice {self.name!r} has options for several layers but no depth gene ('per')")
        if not 0 <= self.scale <= LARGEST_CODE:
            raise SpaceError(f"choice {self.name!r} has scale {self.scale!r}; expected 0 to {LARGEST_CODE:g}")
        object.__setattr__(self, "_code", self._code_table())

    @classmethod
    def make(
        cls,
        name: str,
        options: Sequence[Any],
        per: str | None = None,
        layers: int = 1,
        codes: dict[Any, float] | None = None,
        scale: float = 0.0,
    ) -> Choice:
        """From a flat list of options (the same for all ``layers``) or from one list per layer."""
        nested = any(isinstance(option, list | tuple) for option in options)
        if nested and not all(isinstance(option, list | tuple) for option in options):
            raise SpaceError(
                f"choice {name!r} mixes options and lists of options: {list(options)}; give one list per layer"
            )
        if per and not 1 <= layers <= MOST_LAYERS:
            raise SpaceError(f"choice {name!r} has options for {layers} layers; expected 1 to {MOST_LAYERS}")
        rows = [tuple(row) for row in options] if nested else [tuple(options)] * (layers if per else 1)
        if per and len(rows) != layers:
            raise SpaceError(f"choice {name!r} lists options for {len(rows)} layers, but {per!r} goes up to {layers}")
        return cls(name, tuple(rows), per, tuple((codes or {}).items()), scale)

    def _code_table(self) -> dict[Option, float]:
        table = dict(self.codes)
        names: dict[Option, None] = {}
        for row in self.options:
            for option in row:
                if option in table or option in names:
                    continue
                if isinstance(option, str):
                    names[option] = None
                else:
                    if not -LARGEST_CODE <= option <= LARGEST_CODE:
                        raise SpaceError(
                            f"choice {self.name!r} has option {str(option)[:20]}, which is no usable number"
                        )
                    table[option] = float(option)
        for option, code in self.codes:
            if not -LARGEST_CODE <= code <= LARGEST_CODE:
                raise SpaceError(f"choice {self.name!r} has code {code!r} of {option!r}, which is no usable number")
        table.update({name: float(position) for position, name in enumerate(names)})
        return table

    def code(self, option: Option) -> float:
        """The option as a number: what encodings contain and what orders smallest to largest."""
        table: dict[Option, float] = self._code  # type: ignore[attr-defined]
        return table[option]

    @property
    def unit(self) -> float:
        """The number encodings divide by."""
        return self.scale or max(abs(self.code(option)) for row in self.options for option in row) or 1.0
