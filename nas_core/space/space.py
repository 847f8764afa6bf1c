"""Search spaces of named choices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ArchitectureError, SpaceError, check_choice, unknown_choice
from nas_core.space.architecture import Architecture, Gene, Option
from nas_core.space.choice import Choice
from nas_core.space.slots import ABSENT, Rows, Slots

ENCODINGS = ("summary", "centred", "layers", "onehot")
"""Encodings of architectures.

- ``summary``: one number per choice, the mean over layers, as in HAT and Mixture-of-Supernets.
- ``centred``: the same, scaled to -1 (smallest option of a choice) to 1 (largest), and 0 without layers.
- ``layers``: one number per gene and layer, 0 for absent layers.
- ``onehot``: one indicator per gene, layer and option.
"""


class SearchSpace:
    """All combinations of one option of every choice.

    Methods with ``row`` in their names represent architectures as option indices ``(slots,)`` or ``(n, slots)``, with
    -1 for absent layers.

    Args:
        fixed: genes with a constant value.

    Raises:
        SpaceError: a name occurs twice, or ``per`` of a choice does not name an integer gene.
    """

    def __init__(self, name: str, choices: Sequence[Choice], fixed: Mapping[str, Option] | None = None) -> None:
        if not choices:
            raise SpaceError(f"space {name!r} has no choices; give at least one")
        self.name = name
        self.choices = tuple(choices)
        self.fixed = dict(fixed or {})
        names = [choice.name for choice in self.choices] + list(self.fixed)
        if len(set(names)) != len(names):
            repeated = sorted(n for n in names if names.count(n) > 1)
            raise SpaceError(f"space {name!r} has gene {repeated[0]!r} twice; rename or remove one")
        self.slots = Slots(self.choices)

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
        return self._cardinality

    def largest(self) -> Architecture:
        return self.architecture(self.slots.extreme(np.argmax))

    def smallest(self) -> Architecture:
        return self.architecture(self.slots.extreme(np.argmin))

    def architecture(self, row: NDArray[np.int16]) -> Architecture:
        """Return the architecture with the option indices ``row`` ``(slots,)``."""
        genes: dict[str, Gene] = dict(self.fixed)
        for choice, columns in zip(self.choices, self.slots.columns, strict=True):
            options = [
                row_options[i] for row_options, i in zip(choice.options, row[columns], strict=True) if i != ABSENT
            ]
            genes[choice.name] = options[0] if choice.per is None else tuple(options)
        return Architecture(genes)

    def architectures(self, rows: Rows) -> list[Architecture]:
        return [self.architecture(row) for row in rows]

    def row(self, architecture: Architecture) -> NDArray[np.int16]:
        """Return the option indices ``(slots,)`` of an architecture.

        Raises:
            ArchitectureError: the architecture is outside the space.
        """
        row = np.full(self.slots.count, ABSENT, np.int16)
        extra = sorted(set(architecture) - {c.name for c in self.choices} - set(self.fixed))
        if extra:
            raise ArchitectureError(
                f"architecture has gene {extra[0]!r}, which is not in space {self.name!r}; choose from"
                f" {', '.join(choice.name for choice in self.choices)}"
            )
        for name, value in self.fixed.items():
            if name in architecture and architecture[name] != value:
                raise ArchitectureError(
                    f"architecture has {name} = {architecture[name]!r}; expected {value!r}, as in space {self.name!r}"
                )
        for choice, columns in zip(self.choices, self.slots.columns, strict=True):
            indices = self._indices(choice, architecture)
            row[columns.start : columns.start + len(indices)] = indices
        return row

    def rows(self, architectures: Sequence[Architecture]) -> Rows:
        return np.stack([self.row(a) for a in architectures]) if architectures else self.slots.empty()

    def _indices(self, choice: Choice, architecture: Architecture) -> list[int]:
        gene: Any = architecture[choice.name]
        if choice.per is None:
            gene = (gene,)
        else:
            depth = architecture[choice.per]
            if not isinstance(gene, tuple) or len(gene) != depth:
                raise ArchitectureError(
                    f"architecture has {choice.name} = {gene!r}; expected a list of {depth} options, as {choice.per} is"
                    f" {depth}"
                )
            if len(gene) > len(choice.options):
                raise ArchitectureError(
                    f"architecture has {choice.name} for {len(gene)} layers; expected at most {len(choice.options)},"
                    f" as in space {self.name!r}"
                )
        for layer, (option, options) in enumerate(zip(gene, choice.options, strict=False)):
            if option not in options:
                location = f" (layer {layer + 1})" if choice.per else ""
                raise ArchitectureError(
                    f"architecture has {choice.name} = {option!r}{location}, outside space {self.name!r};"
                    f" choose from {list(options)}"
                )
        return [options.index(option) for option, options in zip(gene, choice.options, strict=False)]

    def validate(self, architecture: Architecture) -> Architecture:
        """Return the architecture with fixed genes added.

        Raises:
            ArchitectureError: the architecture is outside the space.
        """
        return self.architecture(self.row(architecture))

    def __contains__(self, architecture: object) -> bool:
        if not isinstance(architecture, Architecture):
            return False
        try:
            self.row(architecture)
        except ArchitectureError:
            return False
        return True

    def sample_rows(self, rng: np.random.Generator, n: int) -> Rows:
        return self.slots.canonical(self._draw(rng, n))

    def _draw(self, rng: np.random.Generator, n: int) -> Rows:
        return rng.integers(0, self.slots.sizes, size=(n, self.slots.count)).astype(np.int16)

    def sample(self, rng: np.random.Generator) -> Architecture:
        """Draw a random architecture, each gene uniformly, as in HAT."""
        return self.architecture(self.sample_rows(rng, 1)[0])

    def mutate_rows(self, parents: Rows, prob: float, rng: np.random.Generator) -> Rows:
        """Replace each gene with probability ``prob`` by a uniform draw. Genes of new layers are always drawn."""
        mutants = self._draw(rng, len(parents))
        replaced = (rng.random(parents.shape) < prob) | (parents == ABSENT)
        return self.slots.canonical(np.where(replaced, mutants, parents))

    def crossover_rows(self, first: Rows, second: Rows, rng: np.random.Generator) -> Rows:
        """Take each gene from either parent with probability 1/2.

        Genes of a layer that only one parent has come from that parent.
        """
        child = np.where(rng.random(first.shape) < 0.5, first, second)
        return self.slots.canonical(np.where(child == ABSENT, np.maximum(first, second), child))

    def encode(
        self, architectures: Sequence[Architecture] | Architecture, encoding: str = "summary"
    ) -> NDArray[np.float32]:
        """Return an encoding ``(n, features)`` of architectures. ``encoding`` is a name in :data:`ENCODINGS`."""
        if isinstance(architectures, Architecture):
            architectures = [architectures]
        return self.encode_rows(self.rows(architectures), encoding)

    def encode_rows(self, rows: Rows, encoding: str = "summary") -> NDArray[np.float32]:
        check_choice("encoding", encoding, ENCODINGS)
        slots = self.slots
        if encoding == "onehot":
            columns = [rows[:, [slot]] == np.arange(size) for slot, size in enumerate(slots.sizes)]
            return np.concatenate(columns, axis=1).astype(np.float32)
        codes = slots.codes(rows)
        if encoding == "layers":
            units = np.concatenate([np.full(len(c.options), c.unit) for c in self.choices]).astype(np.float32)
            return codes / units
        exists = slots.exists(rows)
        features = np.empty((len(rows), len(self.choices)), np.float32)
        for index, (choice, span) in enumerate(zip(self.choices, slots.columns, strict=True)):
            layers = np.maximum(exists[:, span].sum(1), 1)
            means = codes[:, span].sum(1) / layers
            if encoding == "centred":
                features[:, index] = np.where(exists[:, span].any(1), choice.centred(means), 0.0)
            else:
                features[:, index] = means / choice.unit
        return features

    def feature_names(self, encoding: str = "summary") -> list[str]:
        """Return the column names of an encoding."""
        check_choice("encoding", encoding, ENCODINGS)
        if encoding in ("summary", "centred"):
            return [choice.name + (".mean" if choice.per else "") for choice in self.choices]
        names = []
        for choice in self.choices:
            for layer, options in enumerate(choice.options):
                slot = f"{choice.name}.{layer}" if choice.per else choice.name
                names += [slot] if encoding == "layers" else [f"{slot}={option}" for option in options]
        return names

    @classmethod
    def of(cls, architecture: Architecture, like: SearchSpace | None = None) -> SearchSpace:
        """Return the search space that contains only one architecture.

        Args:
            like: space whose fixed genes, and genes of layer counts, are kept.
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
