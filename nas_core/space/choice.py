"""One gene of a search space and its options."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import SpaceError
from nas_core.space.architecture import Option

MAX_LAYERS = 1_000
MAX_OPTIONS = 32_767
"""Largest number of options of a choice, summed over layers."""


@dataclass(frozen=True)
class Choice:
    """A gene of the network or of each layer, with its options."""

    name: str
    """Name of the gene, such as ``decoder.ffn_dim``."""
    options: tuple[tuple[Option, ...], ...]
    """One tuple of options for the network, or one tuple per layer."""
    per: str | None = None
    """Gene of the number of layers, if there is one option per layer; otherwise None."""
    codes: tuple[tuple[Option, float], ...] = ()
    """Pairs (option, number) for encoding and ordering options. By default, a number is its own code, a string its
    position."""
    scale: float = 0.0
    """Divisor of encodings. 0 means the largest absolute code."""

    def __post_init__(self) -> None:
        if not self.options or not all(self.options):
            raise SpaceError(f"choice {self.name!r} has no options; give at least one")
        if (total := sum(map(len, self.options))) > MAX_OPTIONS:
            raise SpaceError(
                f"choice {self.name!r} has {total} options over all layers; expected at most {MAX_OPTIONS}"
            )
        for row in self.options:
            if invalid := [o for o in row if isinstance(o, bool) or not isinstance(o, int | float | str)]:
                raise SpaceError(f"choice {self.name!r} has option {invalid[0]!r}; expected a number or a string")
            if len(set(row)) != len(row):
                raise SpaceError(f"choice {self.name!r} has an option twice in {list(row)}; remove one")
        if self.per is None and len(self.options) != 1:
            raise SpaceError(
                f"choice {self.name!r} has options for {len(self.options)} layers; set 'per' to the gene of the depth"
            )
        codes: dict[Option, float] = dict(self.codes)
        position = count()
        for option in chain.from_iterable(self.options):
            if option not in codes:
                codes[option] = next(position) if isinstance(option, str) else option
        if not all(map(math.isfinite, codes.values())) or not 0 <= self.scale < math.inf:
            raise SpaceError(
                f"choice {self.name!r} has codes {codes} and scale {self.scale}; expected finite numbers and scale >= 0"
            )
        object.__setattr__(self, "_code", {option: float(code) for option, code in codes.items()})

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
        """Create a choice from one list of options, or from one list per layer.

        Args:
            per: depth gene if the choice is made for each layer.
            layers: number of layers if ``per`` is set. A single list applies to all.
            codes: option -> number in encodings, see :attr:`codes`.
            scale: divisor in encodings, see :attr:`scale`.
        """
        nested = [isinstance(option, list | tuple) for option in options]
        if any(nested) and not all(nested):
            raise SpaceError(
                f"choice {name!r} mixes options and lists of options: {list(options)}; give one list per layer"
            )
        if per and not 1 <= layers <= MAX_LAYERS:
            raise SpaceError(f"choice {name!r} has options for {layers} layers; expected 1 to {MAX_LAYERS}")
        rows = [tuple(row) for row in options] if any(nested) else [tuple(options)] * (layers if per else 1)
        if per and len(rows) != layers:
            raise SpaceError(
                f"choice {name!r} has options for {len(rows)} layers; expected {layers}, the largest option of {per!r}"
            )
        return cls(name, tuple(rows), per, tuple((codes or {}).items()), scale)

    def code(self, option: Option) -> float:
        """Return the number that represents an option in encodings and order."""
        table: dict[Option, float] = self._code  # type: ignore[attr-defined]
        return table[option]

    def centred(self, codes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return codes mapped to -1 (the smallest of all options) to 1 (the largest); 0 if all are equal."""
        all_codes = [self.code(option) for row in self.options for option in row]
        center, half = (max(all_codes) + min(all_codes)) / 2, (max(all_codes) - min(all_codes)) / 2
        return (codes - center) / (half or 1.0)

    @property
    def unit(self) -> float:
        return self.scale or max(abs(self.code(option)) for row in self.options for option in row) or 1.0
