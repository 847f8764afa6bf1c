"""Architectures of any space as numbers in which latency is nearly linear or bilinear.

A network's time is a sum over its layers of products of sizes. So each gene enters as its *total* over the layers that
exist (not as an average, which forgets how many there are), totals enter in pairs (width x total feed-forward size,
decoder depth x everything), and genes of one layer enter as the sum of their products layer by layer. Options that do
not lie on a line between the smallest and the largest one get an indicator of their own; this also covers options that
are names.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nas_core.space import Choice, Option, SearchSpace
from nas_core.space.slots import Rows

Floats = NDArray[np.float64]

_MOST_INDICATED = 8
"""A gene with more options than this gets no indicators: it is a number, and there would be too few data for each."""
_MOST_PAIRED = 24
"""With more totals than this only pairs with a depth gene are formed, which keeps the fit fast and determined."""


class FeatureMap(Protocol):
    """Inputs ``(n, columns)`` -> features ``(n, F)``; the first ``totals`` of them are multiplied in pairs."""

    names: list[str]
    totals: int
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]]
    """First and second index of each product of totals."""

    def __call__(self, inputs: Rows | Floats) -> Floats: ...


class RowFeatures:
    """Features of integer rows ``(n, slots)`` of a space; knows the genes of each layer."""

    def __init__(self, space: SearchSpace) -> None:
        slots = space.slots
        names = [choice.name for choice in space.choices]
        self._columns = slots.columns
        self._tables = [_code_tables(choice) for choice in space.choices]
        self._indicators = [
            (index, [row.index(option) if option in row else None for row in choice.options])
            for index, choice in enumerate(space.choices)
            for option in _middle_options(choice)
        ]
        self._products = [
            (first, second)
            for first, choice in enumerate(space.choices)
            for second in range(first + 1, len(names))
            if choice.per is not None and choice.per == space.choices[second].per
        ]
        self.totals = len(names)
        self.pairs = _pairs(space)
        self.names = [
            *names,
            *(f"{c.name}={option}" for c in space.choices for option in _middle_options(c)),
            *(f"{names[first]}*{names[second]}" for first, second in self._products),
        ]

    def __call__(self, inputs: Rows | Floats) -> Floats:
        columns = np.ascontiguousarray(inputs.T)  # one slot after the other: each feature is a few passes over vectors
        shifted = columns.astype(np.intp) + 1  # 0 stands for a layer that does not exist
        codes = [
            [np.take(table, shifted[slot], mode="clip") for slot, table in zip(_range(where), tables, strict=True)]
            for where, tables in zip(self._columns, self._tables, strict=True)
        ]
        out = np.zeros((len(self.names), columns.shape[1]))
        line = 0
        for layers in codes:
            for values in layers:
                out[line] += values
            out[line] /= len(layers)
            line += 1
        for index, options in self._indicators:
            for slot, option in zip(_range(self._columns[index]), options, strict=True):
                if option is not None:
                    out[line] += columns[slot] == option
            out[line] /= len(options)
            line += 1
        for first, second in self._products:
            for a, b in zip(codes[first], codes[second], strict=True):
                out[line] += a * b
            out[line] /= len(codes[first])
            line += 1
        return out.T


class SummaryFeatures:
    """Features of the averages ``(n, choices)`` of ``space.encode(.., "summary")``, which is all HAT's tables hold.

    Totals are recovered as average x depth; what single layers look like is lost.
    """

    def __init__(self, space: SearchSpace) -> None:
        names = [choice.name for choice in space.choices]
        self._depth_of = [None if choice.per is None else names.index(choice.per) for choice in space.choices]
        self._deepest = {
            names.index(gene): max(1, *(int(d) for d in space.choice(gene).options[0]))
            for gene in sorted(space.slots.depth_genes)
        }
        self._unit = {index: space.choices[index].unit for index in self._deepest}
        self.totals = len(names)
        self.pairs = _pairs(space)
        self.names = names + [f"{names[i]}={d}" for i, deepest in self._deepest.items() for d in range(2, deepest)]

    def __call__(self, inputs: Rows | Floats) -> Floats:
        averages = np.asarray(inputs, np.float64).T
        out = np.zeros((len(self.names), averages.shape[1]))
        for line, depth in enumerate(self._depth_of):
            out[line] = averages[line]
            if depth is not None:
                out[line] *= averages[depth] * self._unit[depth] / self._deepest[depth]
        line = self.totals
        for index, deepest in self._deepest.items():
            layers = np.rint(averages[index] * self._unit[index])
            for depth in range(2, deepest):
                out[line] = layers == depth
                line += 1
        return out.T


def _range(columns: slice) -> range:
    return range(columns.start, columns.stop)


def _code_tables(choice: Choice) -> list[Floats]:
    """For each layer: 0 (no layer), then the options' codes in units of the choice."""
    return [np.array([0.0, *(choice.code(option) / choice.unit for option in row)]) for row in choice.options]


def _middle_options(choice: Choice) -> list[Option]:
    """All options but the smallest and the largest; none for genes that are finely divided numbers."""
    options = sorted({option for row in choice.options for option in row}, key=choice.code)
    names = any(isinstance(option, str) for option in options)
    return options[1:-1] if names or len(options) <= _MOST_INDICATED else []


def _pairs(space: SearchSpace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first, second = np.triu_indices(len(space.choices))
    if len(space.choices) > _MOST_PAIRED:
        deep = np.array([choice.name in space.slots.depth_genes for choice in space.choices])
        keep = deep[first] | deep[second]
        first, second = first[keep], second[keep]
    return first.astype(np.int64), second.astype(np.int64)
