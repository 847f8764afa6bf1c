"""Conversion between search spaces and NNI's search-space files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nas_core.errors import SpaceError
from nas_core.space import Choice, SearchSpace
from nas_core.space.labels import options_by_label

MAX_INTEGERS = 10_000
"""Largest number of options of a ``randint``"""


def nni_search_space(space: SearchSpace) -> dict[str, Any]:
    """Return a space with one ``choice`` per gene and layer, labelled ``space.feature_names("layers")``."""
    return {label: {"_type": "choice", "_value": list(row)} for label, row in options_by_label(space).items()}


def format_space(space: SearchSpace) -> str:
    """Return the content of NNI's ``searchSpaceFile``, for ``nas-ext lab space export --format nni``."""
    return json.dumps(nni_search_space(space), indent=1) + "\n"


def space_from_nni(search_space: Mapping[str, Any]) -> SearchSpace:
    """Return a space with one gene for each ``choice`` of numbers or names and each ``randint``.

    Raises:
        SpaceError: an entry of another type, or other options.
    """
    if not isinstance(search_space, Mapping) or not search_space:
        raise SpaceError(f"the search space is {search_space!r}; expected entries like 'layers: {{_type: choice, ..}}'")
    return SearchSpace("nni", [Choice(label, (_options(label, entry),)) for label, entry in search_space.items()])


def _options(label: str, entry: Any) -> tuple[Any, ...]:
    kind = entry.get("_type") if isinstance(entry, Mapping) else None
    value = entry.get("_value") if isinstance(entry, Mapping) else None
    if kind == "choice" and isinstance(value, list):
        return tuple(value)
    if kind == "randint" and isinstance(value, list) and len(value) == 2 and all(type(end) is int for end in value):
        if not 0 < value[1] - value[0] <= MAX_INTEGERS:
            raise SpaceError(f"{label!r} is a randint of {value}; expected 1 to {MAX_INTEGERS} integers")
        return tuple(range(*value))
    raise SpaceError(
        f"{label!r} of the search space is {entry!r}; architectures are made of {{_type: choice, _value: [..]}} and"
        " {_type: randint, _value: [from, to]}: list the values that matter as a choice"
    )


def check_labels(space: SearchSpace, search_space: Mapping[str, Any]) -> None:
    """Raise a SpaceError with the first entry of an experiment's search space that differs from ``space``."""
    expected = nni_search_space(space)
    advice = f"write it anew with 'nas-ext lab space export {space.name} --format nni'"
    for label in [*expected, *search_space]:
        mine, given = expected.get(label), search_space.get(label)
        if mine != given:
            raise SpaceError(
                f"{label!r} of the experiment's search space is {given!r}, in space {space.name!r} it is {mine!r};"
                f" {advice}"
            )
