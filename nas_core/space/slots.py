"""The flat, vectorised view of a space: one column for each gene of each layer that could exist."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import SpaceError
from nas_core.space.choice import Choice

ABSENT = -1
"""Index stored for a gene whose layer does not exist."""

Rows = NDArray[np.int16]
"""Option indices ``(n, slots)``; canonical: ABSENT exactly where the layer does not exist."""


class Slots:
    """Columns of a space's rows, and which of them exist at which depth."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        self.choices = tuple(choices)
        self.depth_genes = {choice.per for choice in choices if choice.per is not None}
        self.columns: list[slice] = []
        count = 0
        for choice in choices:
            self.columns.append(slice(count, count + len(choice.options)))
            count += len(choice.options)
        self.count = count
        self.sizes = np.array([len(row) for choice in choices for row in choice.options], np.int64)
        self._depth = self._depth_columns()
        self._codes = self._code_table()

    def _depth_columns(self) -> dict[str, tuple[int, NDArray[np.int64]]]:
        table = {}
        by_name = {choice.name: (choice, columns) for choice, columns in zip(self.choices, self.columns, strict=True)}
        for name in sorted(self.depth_genes):
            if name not in by_name:
                raise SpaceError(f"no choice named {name!r}, but others are repeated by it; add it")
            gene, columns = by_name[name]
            if gene.per is not None:
                raise SpaceError(f"depth gene {name!r} is itself repeated per layer; a depth must be one gene")
            depths = gene.options[0]
            if not all(isinstance(depth, int) and depth >= 0 for depth in depths):
                raise SpaceError(f"depth gene {name!r} has options {list(depths)}; expected layer counts")
            for choice in self.choices:
                if choice.per == name and len(choice.options) != max(int(d) for d in depths):
                    raise SpaceError(
                        f"choice {choice.name!r} lists {len(choice.options)} layers, {name!r} goes up to {max(depths)}"
                    )
            table[name] = (columns.start, np.array(depths, np.int64))
        return table

    def _code_table(self) -> NDArray[np.float32]:
        table = np.zeros((self.count, int(self.sizes.max())), np.float32)
        for choice, columns in zip(self.choices, self.columns, strict=True):
            for column, row in zip(range(columns.start, columns.stop), choice.options, strict=True):
                table[column, : len(row)] = [choice.code(option) for option in row]
        return table

    def empty(self) -> Rows:
        return np.zeros((0, self.count), np.int16)

    def below(self, depth_gene: str, depth: int) -> int:
        """In how many ways the genes of the first ``depth`` layers can be chosen."""
        total = 1
        for choice in self.choices:
            if choice.per == depth_gene:
                for row in choice.options[:depth]:
                    total *= len(row)
        return total

    def exists(self, rows: Rows) -> NDArray[np.bool_]:
        """Which genes exist ``(n, slots)``, by the depths written in the rows."""
        mask = np.ones(rows.shape, np.bool_)
        for choice, columns in zip(self.choices, self.columns, strict=True):
            if choice.per is not None:
                column, depths = self._depth[choice.per]
                mask[:, columns] = np.arange(columns.stop - columns.start) < depths[rows[:, column]][:, None]
        return mask

    def canonical(self, rows: Rows) -> Rows:
        """The rows with the genes of layers that do not exist dropped."""
        return np.where(self.exists(rows), rows, ABSENT).astype(np.int16)

    def codes(self, rows: Rows) -> NDArray[np.float32]:
        """Each option's number ``(n, slots)``, 0 where the layer does not exist."""
        values = self._codes[np.arange(self.count), np.maximum(rows, 0)]
        return np.where(rows == ABSENT, np.float32(0), values)

    def extreme(self, pick: Callable[..., Any]) -> NDArray[np.int16]:
        """The row of the option ``pick`` (argmin, argmax) by code in every slot."""
        rows = [(choice, options) for choice in self.choices for options in choice.options]
        row = [int(pick([choice.code(option) for option in options])) for choice, options in rows]
        return self.canonical(np.array([row], np.int16)).reshape(-1)

    def depth_weights(self, depth_gene: str) -> NDArray[np.float64]:
        """Probability of each depth when all architectures are equally likely."""
        depths = self._depth[depth_gene][1]
        counts = [self.below(depth_gene, int(depth)) for depth in depths]
        total = sum(counts)
        return np.array([count / total for count in counts])

    def depth_column(self, depth_gene: str) -> int:
        return self._depth[depth_gene][0]
