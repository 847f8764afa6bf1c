"""Sizes of networks as standardised features, for any search space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nas_core.search.limits import costs_on_paper
from nas_core.space import Architecture, SearchSpace
from nas_core.space.choice import Choice
from nas_core.space.slots import ABSENT

Array = NDArray[np.float64]
SAMPLES = 1000
"""Number of random architectures for the standardisation."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of architectures as features.

    Features are sums over layers of numeric genes, parameters and FLOPs if known, logarithms of all these, and means
    over layers of the ``Choice.codes`` of named options. Numeric genes that define ``codes`` are not used.
    """

    space: SearchSpace

    def columns(self, architectures: Sequence[Architecture]) -> tuple[Array, Array]:
        """Return features and sums of genes.

        Returns:
            Features ``(B, C + 1)``, standardised over random architectures to mean 0 and mean square 1 / C; the last is
            the mean of all sizes, with mean square 1.
            Sums of numeric genes over layers ``(B, G)``; the features in a space without numeric genes.
        """
        middle, deviation, common = self._scale
        raw = self._raw(architectures)
        standard, sizes = self._standard(raw, middle, deviation)
        mean_size = sizes.mean(1) / common if sizes.shape[1] else np.zeros(len(standard))
        features = np.column_stack([standard / np.sqrt(max(standard.shape[1], 1)), mean_size])
        summed = self._sized // 2 - len(self._costs)
        return features, raw[:, :summed] if summed else features

    @cached_property
    def _costs(self) -> list[Callable[[Architecture], float]]:
        return list(costs_on_paper(self.space).values())

    @cached_property
    def _sized(self) -> int:
        return 2 * (sum(map(_is_size, self.space.choices)) + len(self._costs))

    @cached_property
    def _scale(self) -> tuple[Array, Array, float]:
        rows = self.space.sample_rows(np.random.default_rng(0), SAMPLES)
        raw = self._raw(self.space.architectures(rows))
        middle, deviation = raw.mean(0), raw.std(0)
        deviation[deviation <= 1e-9 * np.abs(middle)] = 0.0
        _, sizes = self._standard(raw, middle, deviation)
        return middle, deviation, float(sizes.mean(1).std()) if sizes.shape[1] else 1.0

    def _standard(self, raw: Array, middle: Array, deviation: Array) -> tuple[Array, Array]:
        varies = deviation > 0
        standard = (raw - middle)[:, varies] / deviation[varies]
        return standard, standard[:, np.flatnonzero(varies) < self._sized]

    def _raw(self, architectures: Sequence[Architecture]) -> Array:
        rows = self.space.rows(architectures)
        codes = self.space.slots.codes(rows).astype(np.float64)  # 0 where a layer does not exist
        layers = (rows != ABSENT).astype(np.float64)
        sizes, names = [], []
        for choice, slots in zip(self.space.choices, self.space.slots.columns, strict=True):
            if _is_size(choice):
                sizes.append(codes[:, slots].sum(1))
            elif not choice.codes or any(isinstance(option, str) for row in choice.options for option in row):
                names.append(codes[:, slots].sum(1) / np.maximum(layers[:, slots].sum(1), 1))
        sizes += [np.array([cost(architecture) for architecture in architectures]) for cost in self._costs]
        logarithms = [np.log(np.maximum(column, 1e-12)) for column in sizes]
        columns = [*sizes, *logarithms, *names]
        return np.column_stack(columns).astype(np.float64) if columns else np.zeros((len(rows), 0))


def _is_size(choice: Choice) -> bool:
    numbers = [option for row in choice.options for option in row]
    return not choice.codes and all(not isinstance(option, str) and option > 0 for option in numbers)
