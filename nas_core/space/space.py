"""A search space: named choices, some of them repeated for each layer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ArchitectureError, SpaceError, unknown_choice
from nas_core.space import encoding, sampling
from nas_core.space.architecture import Architecture, Gene, Option
from nas_core.space.choice import Choice
from nas_core.space.slots import ABSENT, Rows, Slots


class SearchSpace:
    """All architectures that can be made by taking one option of every choice.

    A choice with ``per`` holds one option for each layer that exists; the gene named by ``per`` gives their number.
    Genes in ``fixed`` belong to every architecture and are no choice (e.g. ``qkv_dim`` of HAT's spaces).

    Two representations are in use: :class:`Architecture` values, and for bulk work integer rows ``(n, slots)`` holding
    the index of the option in each slot, -1 where the layer does not exist (see :mod:`nas_core.space.slots`).

    Raises:
        SpaceError: names that repeat, a depth gene that is missing or not made of integers.
    """

    def __init__(self, name: str, choices: Sequence[Choice], fixed: Mapping[str, Option] | None = None) -> None:
        if not choices:
            raise SpaceError(f"space {name!r} has no choices; give at least one")
        self.name = name
        self.choices = tuple(choices)
        self.fixed = dict(fixed or {})
        names = [choice.name for choice in self.choices] + list(self.fixed)
        if len(set(names)) != len(names):
            raise SpaceError(f"space {name!r} names a gene twice: {sorted(n for n in names if names.count(n) > 1)}")
        self.slots = Slots(self.choices)

    # -- description -------------------------------------------------------------------------------------------------

    def choice(self, name: str) -> Choice:
        for choice in self.choices:
            if choice.name == name:
                return choice
        raise unknown_choice(f"gene of space {self.name!r}", name, [choice.name for choice in self.choices])

    @cached_property
    def _cardinality(self) -> int:
        total = 1
        for choice in self.choices:
            if choice.name in self.slots.depth_genes:
                total *= sum(self.slots.below(choice.name, int(depth)) for depth in choice.options[0])
            elif choice.per is None:
                total *= len(choice.options[0])
        return total

    def cardinality(self) -> int:
        """Number of different architectures, exact."""
        return self._cardinality

    def largest(self) -> Architecture:
        """The architecture with the largest option of every choice."""
        return self.architecture(self.slots.extreme(np.argmax))

    def smallest(self) -> Architecture:
        """The architecture with the smallest option of every choice."""
        return self.architecture(self.slots.extreme(np.argmin))

    # -- values and rows ---------------------------------------------------------------------------------------------

    def architecture(self, row: NDArray[np.int16]) -> Architecture:
        """One row ``(slots,)`` as a value."""
        genes: dict[str, Gene] = dict(self.fixed)
        for choice, columns in zip(self.choices, self.slots.columns, strict=True):
            if choice.per is None:
                genes[choice.name] = choice.options[0][row[columns.start]]
            else:
                indices = [int(index) for index in row[columns] if index != ABSENT]
                genes[choice.name] = tuple(choice.options[layer][index] for layer, index in enumerate(indices))
        return Architecture(genes)

    def architectures(self, rows: Rows) -> list[Architecture]:
        return [self.architecture(row) for row in rows]

    def row(self, architecture: Architecture) -> NDArray[np.int16]:
        """The architecture as option indices ``(slots,)``.

        Raises:
            ArchitectureError: it lies outside the space; the message names the first gene at fault and its options.
        """
        row = np.full(self.slots.count, ABSENT, np.int16)
        extra = sorted(set(architecture) - {c.name for c in self.choices} - set(self.fixed))
        if extra:
            raise ArchitectureError(
                f"architecture has gene {extra[0]!r}, which space {self.name!r} lacks; it has"
                f" {', '.join(choice.name for choice in self.choices)}"
            )
        for name, value in self.fixed.items():
            if name in architecture and architecture[name] != value:
                raise ArchitectureError(
                    f"architecture has {name} = {architecture[name]!r}, but it is fixed to {value!r} in {self.name!r}"
                )
        for choice, columns in zip(self.choices, self.slots.columns, strict=True):
            row[columns] = self._indices(choice, architecture)
        return row

    def rows(self, architectures: Sequence[Architecture]) -> Rows:
        return np.stack([self.row(a) for a in architectures]) if architectures else self.slots.empty()

    def _indices(self, choice: Choice, architecture: Architecture) -> list[int]:
        gene = architecture[choice.name]
        if choice.per is None:
            return [self._index(choice, 0, gene)]
        depth = architecture[choice.per]
        if not isinstance(gene, tuple) or len(gene) != depth:
            raise ArchitectureError(
                f"architecture has {choice.name} = {gene!r}, expected {depth} options, one per layer of {choice.per}"
            )
        if len(gene) > len(choice.options):
            raise ArchitectureError(
                f"architecture has {len(gene)} layers in {choice.name}, space {self.name!r} has {len(choice.options)}"
            )
        return [self._index(choice, layer, option) for layer, option in enumerate(gene)] + [ABSENT] * (
            len(choice.options) - len(gene)
        )

    def _index(self, choice: Choice, layer: int, option: Any) -> int:
        options = choice.options[layer]
        if option in options:
            return options.index(option)
        where = f" (layer {layer + 1})" if choice.per else ""
        raise ArchitectureError(
            f"architecture has {choice.name} = {option!r}{where}, outside space {self.name!r};"
            f" choose from {list(options)}"
        )

    def validate(self, architecture: Architecture) -> Architecture:
        """The same architecture with the fixed genes filled in; an error if it lies outside the space."""
        return self.architecture(self.row(architecture))

    def __contains__(self, architecture: object) -> bool:
        if not isinstance(architecture, Architecture):
            return False
        try:
            self.row(architecture)
        except ArchitectureError:
            return False
        return True

    # -- drawing -----------------------------------------------------------------------------------------------------

    def sample_rows(self, rng: np.random.Generator, n: int, how: str = "gene") -> Rows:
        """``n`` random rows; ``how`` as in :meth:`sample`."""
        return sampling.sample(self.slots, rng, n, how)

    def sample(self, rng: np.random.Generator, how: str = "gene") -> Architecture:
        """One random architecture.

        ``how="gene"`` draws each gene uniformly (HAT's way: a decoder of one layer is as likely as one of six, which is
        what supernet training wants); ``"architecture"`` draws uniformly over all architectures of the space.
        """
        return self.architecture(self.sample_rows(rng, 1, how)[0])

    def mutate_rows(self, parents: Rows, prob: float, rng: np.random.Generator) -> Rows:
        return sampling.mutate(self.slots, parents, prob, rng)

    def mutate(self, architecture: Architecture, prob: float, rng: np.random.Generator) -> Architecture:
        """Each gene is replaced with probability ``prob`` by a uniform draw (which may draw the same option)."""
        return self.architecture(self.mutate_rows(self.row(architecture)[None], prob, rng)[0])

    def crossover_rows(self, first: Rows, second: Rows, rng: np.random.Generator) -> Rows:
        return sampling.crossover(self.slots, first, second, rng)

    def crossover(self, first: Architecture, second: Architecture, rng: np.random.Generator) -> Architecture:
        """Each gene comes from either parent with probability one half."""
        return self.architecture(self.crossover_rows(self.row(first)[None], self.row(second)[None], rng)[0])

    # -- numbers for models ------------------------------------------------------------------------------------------

    def encode(self, architectures: Sequence[Architecture] | Architecture, how: str = "summary") -> NDArray[np.float32]:
        """Architectures as numbers ``(n, features)``; ``how`` is one of :data:`nas_core.space.encoding.ENCODINGS`."""
        if isinstance(architectures, Architecture):
            architectures = [architectures]
        return self.encode_rows(self.rows(architectures), how)

    def encode_rows(self, rows: Rows, how: str = "summary") -> NDArray[np.float32]:
        return encoding.encode(self.slots, rows, how)

    def feature_names(self, how: str = "summary") -> list[str]:
        return encoding.feature_names(self.slots, how)

    # -- other spaces and files --------------------------------------------------------------------------------------

    @classmethod
    def of(cls, architecture: Architecture, like: SearchSpace | None = None) -> SearchSpace:
        """The space that holds exactly this architecture: what a static subnet is built from.

        Per-layer genes are those whose value is a tuple; without ``like`` each is repeated by ``<side>.layers``.
        """
        choices = []
        for name in [c.name for c in like.choices] if like else architecture:
            gene = architecture[name]
            if isinstance(gene, tuple):
                depth = (like.choice(name).per if like else None) or f"{name.split('.')[0]}.layers"
                choices.append(Choice(name, tuple((option,) for option in gene), depth))
            else:
                choices.append(Choice(name, ((gene,),)))
        fixed = {name: architecture[name] for name in like.fixed} if like else {}
        return cls(f"static-{architecture.key}", choices, fixed)  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SearchSpace) and (self.choices, self.fixed) == (other.choices, other.fixed)

    def __hash__(self) -> int:
        return hash((self.choices, tuple(sorted(self.fixed.items(), key=str))))

    def __repr__(self) -> str:
        return f"SearchSpace({self.name!r}, {len(self.choices)} choices, 10^{math.log10(self.cardinality()):.1f})"
