"""Conversion between NNI's model spaces and search spaces."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from nas_core.errors import SpaceError
from nas_core.space import Architecture, Choice, SearchSpace
from nas_core.space.architecture import Option
from nas_core.space.files import space_from_dict, space_to_dict
from nas_core.space.labels import architecture_of, options_by_label
from nas_core.space.slots import ABSENT
from nni_ext.compat import host_class, nni_module
from nni_ext.graphs import Sample

MAX_SUBSETS = 1024
"""Largest number of subsets for which a choice of several values is one gene; above it, each value is a gene."""
GRANULARITY = 4
"""NNI's granularity of grids: a numerical range becomes ``2 ** GRANULARITY - 1`` options."""

_FEATURE = "searching spaces of nas_core with NNI"
_SEARCHING = "searching model spaces of NNI"
_ModelSpace: Any = host_class("nni.nas.nn.pytorch", "ModelSpace", _FEATURE)


@dataclass(frozen=True)
class FlatSpace:
    """Search space with one gene for each label of an NNI model space."""

    space: SearchSpace
    labels: tuple[str, ...]
    """NNI's label of each gene."""
    values: tuple[tuple[Any, ...], ...]
    """NNI's values of each gene, in the order of the gene's options."""
    checked: bool = False
    """True if the model space rejects some samples, so that each sample must be validated."""

    def sample_of_row(self, row: NDArray[np.int16]) -> dict[str, Any]:
        """Return the sample of a row of option indices; genes of absent layers have their first value."""
        return {
            label: values[0 if index == ABSENT else index]
            for label, values, index in zip(self.labels, self.values, row.tolist(), strict=True)
        }

    def sample(self, architecture: Architecture) -> dict[str, Any]:
        return self.sample_of_row(self.space.row(architecture))


def flat_space(
    name: str, options: Mapping[str, Sequence[Any]], base: SearchSpace | None = None, checked: bool = False
) -> FlatSpace:
    """Return a search space with one gene per label.

    Args:
        options: label -> values of any type.
        base: search space whose genes come first.
        checked: see :class:`FlatSpace`.

    Raises:
        SpaceError: there is no label, or a label has no values or a repeated value.
    """
    # Values that are neither numbers nor strings (tuples, flags, None, modules) get names that are equal in every
    # process.
    choices = list(base.choices) if base else []
    values = dict(options_by_label(base)) if base else {}
    for label, label_values in options.items():
        choices.append(Choice(str(label), (_options(label_values),)))
        values[str(label)] = tuple(label_values)
    space = SearchSpace(base.name if base else name, choices, base.fixed if base else None)
    return FlatSpace(space, tuple(values), tuple(values.values()), checked)


def flatten(model_space: Any) -> FlatSpace:
    """Convert an NNI model space, including the evaluator's parameters, to a search space.

    A choice of several values becomes a choice among subsets, a numerical range a choice among grid points. Weights of
    choices are ignored.

    Raises:
        SpaceError: the model space has no choice, or an unsupported mutable.
    """
    mutable = nni_module("nni.mutable", _SEARCHING)
    annotation = nni_module("nni.mutable.annotation", _SEARCHING).MutableAnnotation
    leaves = model_space.simplify(
        lambda leaf: (
            isinstance(leaf, mutable.LabeledMutable)
            and not (isinstance(leaf, mutable.CategoricalMultiple) and _subset_count(leaf) > MAX_SUBSETS)
        )
    )
    base = _original_space(model_space)
    base_labels = options_by_label(base) if base else {}
    options: dict[str, Sequence[Any]] = {}
    checked = False
    for label, leaf in leaves.items():
        if isinstance(leaf, annotation):
            checked = True
        elif label not in base_labels:
            options[str(label)] = _values(mutable, leaf)
    return flat_space(_class_of(model_space).__name__, options, base, checked)


def _values(mutable: Any, leaf: Any) -> Sequence[Any]:
    if isinstance(leaf, mutable.Categorical):
        return list(leaf.values)
    if isinstance(leaf, mutable.CategoricalMultiple):
        sizes = range(len(leaf.values) + 1) if leaf.n_chosen is None else [leaf.n_chosen]
        return [list(subset) for size in sizes for subset in itertools.combinations(leaf.values, size)]
    if isinstance(leaf, mutable.Numerical):
        return list(dict.fromkeys(leaf.grid({}, granularity=GRANULARITY)))
    raise SpaceError(
        f"the mutable with label {leaf.label!r} is a {type(leaf).__name__}; expected a choice (nni.choice, LayerChoice,"
        " InputChoice, Repeat) or a numerical range"
    )


def _subset_count(leaf: Any) -> int:
    count = len(leaf.values)
    return 2**count if leaf.n_chosen is None else math.comb(count, leaf.n_chosen)


def _wrapped_space(model_space: Any) -> Any:
    return next((getattr(model_space, name) for name in ("model_space", "model") if hasattr(model_space, name)), None)


def _class_of(model_space: Any) -> type:
    nas = nni_module("nni.nas.space", _SEARCHING)
    inner = _wrapped_space(model_space) if isinstance(model_space, nas.ExecutableModelSpace) else model_space
    kind: type = getattr(inner, "trace_symbol", type(inner))
    return kind


def _original_space(model_space: Any) -> SearchSpace | None:
    if not issubclass(_class_of(model_space), ArchitectureSpace):
        return None
    traced = model_space if isinstance(model_space, ArchitectureSpace) else _wrapped_space(model_space)
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


# -- search spaces of nas_core as model spaces -------------------------------------------------------------------------


class ArchitectureModule(nn.Module):
    """Model that holds an architecture and has no weights, for evaluators."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture


class ArchitectureSpace(_ModelSpace):
    """NNI model space with one mutable for each gene of each layer.

    Args:
        space: search space as a dictionary, from :func:`nas_core.space.files.space_to_dict`.
    """

    def __init__(self, space: Mapping[str, Any]) -> None:
        super().__init__()
        self.space = space_from_dict(space)
        choice = nni_module("nni", _FEATURE).choice
        for label, options in options_by_label(self.space).items():
            self.add_mutable(choice(label, list(options)))

    def freeze(self, sample: Sample) -> ArchitectureModule:
        self.validate(sample)
        return ArchitectureModule(architecture_of(self.space, sample))

    @classmethod
    def create_fixed_module(cls, sample: Sample, space: Mapping[str, Any]) -> ArchitectureModule:
        return ArchitectureModule(architecture_of(space_from_dict(space), sample))


def as_model_space(space: SearchSpace) -> ArchitectureSpace:
    """Convert a search space to an NNI model space, for any strategy of NNI."""
    return ArchitectureSpace(space=space_to_dict(space))
