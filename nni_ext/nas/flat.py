"""Model spaces of NNI as search spaces of ``nas_core``: one gene per label, and samples as architectures.

Nothing of NNI is imported before a model space is given.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ArchitectureError, SpaceError
from nas_core.space import Architecture, Choice, Option, SearchSpace, space_from_dict
from nas_core.space.labels import options_by_label
from nas_core.space.slots import ABSENT
from nni_ext.compat import nni_module
from nni_ext.graphs import Sample

MAX_SUBSETS = 1024
"""A choice of several values becomes one gene up to this many subsets, beyond it a yes or no for each value."""
GRANULARITY = 4
"""A range of numbers becomes ``2 ** GRANULARITY - 1`` options, at equal steps of its distribution."""
MAX_OPTIONS = np.iinfo(np.int16).max


@dataclass(frozen=True)
class FlatSpace:
    """A search space, and what NNI calls the options of its genes."""

    space: SearchSpace
    """Genes for the labels."""
    labels: tuple[str, ...]
    """Labels of the space's slots, in order."""
    values: tuple[tuple[Any, ...], ...]
    """Values of each slot, in the order of the gene's options."""
    checked: bool = False
    """Whether the model space refuses some samples, so that each has to be shown to it."""

    def sample_of_row(self, row: NDArray[np.int16]) -> dict[str, Any]:
        """Label -> value; labels of layers that do not exist have their first value, since NNI wants them all."""
        return {
            label: values[0 if index == ABSENT else index]
            for label, values, index in zip(self.labels, self.values, row.tolist(), strict=True)
        }

    def sample(self, architecture: Architecture) -> dict[str, Any]:
        """Return NNI's sample of an architecture.

        Raises:
            ArchitectureError: it lies outside the space.
        """
        return self.sample_of_row(self.space.row(architecture))

    def architecture(self, sample: Sample) -> Architecture:
        """The way back; other labels are passed over. Tuples may have become lists, as JSON makes them.

        Raises:
            ArchitectureError: a label is missing, or its value is none of its options.
        """
        row = [self._index(sample, slot) for slot in range(len(self.labels))]
        return self.space.architecture(self.space.slots.canonical(np.array([row], np.int16))[0])

    def _index(self, sample: Sample, slot: int) -> int:
        label, values = self.labels[slot], self.values[slot]
        if label not in sample:
            raise ArchitectureError(f"sample has no label {label!r} of space {self.space.name!r}")
        wanted = _listed(sample[label])
        for index, value in enumerate(values):
            if _listed(value) == wanted:
                return index
        raise ArchitectureError(
            f"sample has {label} = {sample[label]!r}, outside space {self.space.name!r}; choose from {list(values)}"
        )


def flat_space(
    name: str, options: Mapping[str, Sequence[Any]], base: SearchSpace | None = None, checked: bool = False
) -> FlatSpace:
    """A space with one gene per label, with the label as its name.

    Numbers stay numbers and names stay names. Where a label has any other value (tuples, flags, None, modules), its
    options are named after the values, in their order, so that they are the same in every process.

    Args:
        options: label -> values, all of any type.
        base: a space whose genes come first, with their labels in ``feature_names("layers")``.
        checked: see :class:`FlatSpace`.

    Raises:
        SpaceError: no label at all, or one without values, with the same value twice, or more than 32,767 of them.
    """
    if not options and base is None:
        raise SpaceError(f"model space {name!r} has nothing to choose; make layers or values of it nni.choice(..)")
    choices = list(base.choices) if base else []
    known = options_by_label(base) if base else {}
    labels, values = list(known), list(known.values())
    for label, given in options.items():
        if not 0 < len(given) <= MAX_OPTIONS:
            raise SpaceError(f"label {label!r} has {len(given)} values; expected 1 to {MAX_OPTIONS}")
        choices.append(Choice(str(label), (_options(given),)))
        labels.append(str(label))
        values.append(tuple(given))
    made = SearchSpace(base.name if base else name, choices, base.fixed if base else None)
    return FlatSpace(made, tuple(labels), tuple(values), checked)


def flatten(model_space: Any) -> FlatSpace:
    """The space of a model space as strategies hold it (or as it was written).

    Of a space of ``nni_ext.as_model_space`` it is the original one, where layers that do not exist do not tell
    architectures apart. Genes of an evaluator's own parameters are added. Choices of several values become subsets,
    ranges of numbers a grid; weights of choices are not kept.

    Raises:
        SpaceError: nothing to choose, or a kind of choice that is not known here. MissingHostError: NNI is absent.
    """
    mutable = nni_module("nni.mutable", "searching model spaces of NNI")
    annotation = nni_module("nni.mutable.annotation", "searching model spaces of NNI").MutableAnnotation
    leaves = model_space.simplify(
        lambda one: (
            isinstance(one, mutable.LabeledMutable)
            and not (isinstance(one, mutable.CategoricalMultiple) and _subset_count(one) > MAX_SUBSETS)
        )
    )
    base = _own_space(model_space)
    own = options_by_label(base) if base else {}
    options: dict[str, Sequence[Any]] = {}
    checked = False
    for label, leaf in leaves.items():
        if isinstance(leaf, annotation):
            checked = True
        elif label not in own:
            options[str(label)] = _values(mutable, leaf)
    return flat_space(_class_of(model_space).__name__, options, base, checked)


def _values(mutable: Any, leaf: Any) -> Sequence[Any]:
    if isinstance(leaf, mutable.Categorical):
        return list(leaf.values)
    if isinstance(leaf, mutable.CategoricalMultiple):
        sizes = range(len(leaf.values) + 1) if leaf.n_chosen is None else [leaf.n_chosen]
        return [list(chosen) for size in sizes for chosen in itertools.combinations(leaf.values, size)]
    if isinstance(leaf, mutable.Numerical):
        return list(dict.fromkeys(leaf.grid({}, granularity=GRANULARITY)))
    raise SpaceError(
        f"label {leaf.label!r} is a {type(leaf).__name__}; expected a choice (nni.choice, LayerChoice, InputChoice,"
        " Repeat) or a range of numbers"
    )


def _subset_count(leaf: Any) -> int:
    count = len(leaf.values)
    return 2**count if leaf.n_chosen is None else math.comb(count, leaf.n_chosen)


def _wrapped(model_space: Any) -> Any:
    """What an executable model space was made of: the model space, or its class with its arguments."""
    return next((getattr(model_space, name) for name in ("model_space", "model") if hasattr(model_space, name)), None)


def _class_of(model_space: Any) -> type:
    nas = nni_module("nni.nas.space", "searching model spaces of NNI")
    inner = _wrapped(model_space) if isinstance(model_space, nas.ExecutableModelSpace) else model_space
    kind: type = getattr(inner, "trace_symbol", type(inner))
    return kind


def _own_space(model_space: Any) -> SearchSpace | None:
    from nni_ext.nas.space import ArchitectureSpace

    if not issubclass(_class_of(model_space), ArchitectureSpace):
        return None
    traced = model_space if isinstance(model_space, ArchitectureSpace) else _wrapped(model_space)
    return space_from_dict(traced.trace_kwargs["space"])


def _options(values: Sequence[Any]) -> tuple[Option, ...]:
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    for kind in (int | float, str):
        if all(isinstance(value, kind) and not isinstance(value, bool) and value == value for value in plain):
            return tuple(plain)
    names = [_name(value) for value in plain]
    if len(set(names)) == len(names):
        return tuple(names)
    return tuple(f"{index}:{name}" for index, name in enumerate(names))


def _name(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_name, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_name(key)}: {_name(item)}' for key, item in value.items())}}}"
    plain = value is None or isinstance(value, bool | int | float | str)
    return str(value) if plain else type(value).__name__


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, list | tuple) else value
