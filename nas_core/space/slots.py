"""Architectures as integer rows with one column (slot) per gene and possible layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import SpaceError
from nas_core.space.choice import Choice

ABSENT = -1
"""Index of the genes of absent layers."""

Rows = NDArray[np.int16]
"""Option indices ``(n, slots)`` of n architectures, ``ABSENT`` in absent layers."""


class Slots:
    """Columns of integer rows that represent architectures."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        self.choices = tuple(choices)
        self.depth_genes = {choice.per for choice in choices if choice.per is not None}
        ends = np.cumsum([0, *(len(choice.options) for choice in choices)]).tolist()
        self.columns = [slice(start, stop) for start, stop in pairwise(ends)]
        self.count: int = ends[-1]
        rows = [(choice, options) for choice in choices for options in choice.options]
        self.sizes = np.array([len(options) for _, options in rows], np.int64)
        self._depth = {name: self._depth_column(name) for name in sorted(self.depth_genes)}
        self._codes = np.zeros((self.count, int(self.sizes.max())), np.float32)
        for column, (choice, options) in enumerate(rows):
            self._codes[column, : len(options)] = [choice.code(option) for option in options]

    def _depth_column(self, name: str) -> tuple[int, NDArray[np.int64]]:
        place = next((index for index, choice in enumerate(self.choices) if choice.name == name), None)
        if place is None:
            raise SpaceError(
                f"there is no choice {name!r}, but another choice has 'per: {name}'; add a choice {name!r}"
            )
        depths = self.choices[place].options[0]
        if self.choices[place].per or not all(isinstance(depth, int) and depth >= 0 for depth in depths):
            raise SpaceError(f"gene {name!r} has options {list(depths)}; expected numbers of layers, without 'per'")
        for choice in self.choices:
            if choice.per == name and len(choice.options) != max(int(depth) for depth in depths):
                raise SpaceError(
                    f"choice {choice.name!r} has options for {len(choice.options)} layers;"
                    f" expected {max(depths)}, the largest option of {name!r}"
                )
        return self.columns[place].start, np.array(depths, np.int64)

    def empty(self) -> Rows:
        return np.zeros((0, self.count), np.int16)

    def below(self, depth_gene: str, depth: int) -> int:
        """Return the number of combinations of genes in the first ``depth`` layers of ``depth_gene``."""
        return math.prod(
            len(row) for choice in self.choices if choice.per == depth_gene for row in choice.options[:depth]
        )

    def exists(self, rows: Rows) -> NDArray[np.bool_]:
        """Return a boolean mask ``(n, slots)``, True for genes of existing layers."""
        mask = np.ones(rows.shape, np.bool_)
        for choice, columns in zip(self.choices, self.columns, strict=True):
            if choice.per is not None:
                column, depths = self._depth[choice.per]
                mask[:, columns] = np.arange(columns.stop - columns.start) < depths[rows[:, column]][:, None]
        return mask

    def canonical(self, rows: Rows) -> Rows:
        """Set genes of absent layers to ``ABSENT``."""
        return np.where(self.exists(rows), rows, ABSENT).astype(np.int16)

    def codes(self, rows: Rows) -> NDArray[np.float32]:
        """Return the numbers that represent options, ``(n, slots)``; 0 for absent layers."""
        values = self._codes[np.arange(self.count), np.maximum(rows, 0)]
        return np.where(rows == ABSENT, np.float32(0), values)

    def extreme(self, pick: Callable[..., Any]) -> NDArray[np.int16]:
        """Return the row with the smallest (``np.argmin``) or largest (``np.argmax``) options."""
        rows = [(choice, options) for choice in self.choices for options in choice.options]
        row = [int(pick([choice.code(option) for option in options])) for choice, options in rows]
        return self.canonical(np.array([row], np.int16)).reshape(-1)
