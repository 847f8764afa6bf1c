"""Conversion between search spaces and NNI's search-space files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nas_core.errors import SpaceError
from nas_core.space import Choice, SearchSpace
from nas_core.space.labels import options_by_label

MAX_INTEGERS = 10_000
"""Largest number of values of a ``randint``."""


def nni_search_space(space: SearchSpace) -> dict[str, Any]:
    """Return NNI's search space with one ``choice`` for each gene of each layer."""
    return {label: {"_type": "choice", "_value": list(row)} for label, row in options_by_label(space).items()}


def format_space(space: SearchSpace) -> str:
    """Return the content of NNI's ``searchSpaceFile``."""
    return json.dumps(nni_search_space(space), indent=1) + "\n"


def space_from_nni(search_space: Mapping[str, Any]) -> SearchSpace:
    """Return a search space with one gene for each ``choice`` and ``randint`` of NNI's search space.

    Raises:
        SpaceError: an entry has another type, or its options are neither numbers nor strings.
    """
    return SearchSpace("nni", [Choice(label, (_options(label, entry),)) for label, entry in search_space.items()])


def _options(label: str, entry: Any) -> tuple[Any, ...]:
    match entry:
        case {"_type": "choice", "_value": list(values)}:
            return tuple(values)
        case {"_type": "randint", "_value": [int(low), int(high)]} if 0 < high - low <= MAX_INTEGERS:
            return tuple(range(low, high))
    raise SpaceError(
        f"{label!r} of the search space is {entry!r}; expected {{_type: choice, _value: [..]}}, or {{_type: randint,"
        f" _value: [low, high]}} with at most {MAX_INTEGERS} integers"
    )


def check_labels(space: SearchSpace, search_space: Mapping[str, Any]) -> None:
    """Raise a SpaceError if NNI's search space of an experiment differs from ``space``."""
    expected = nni_search_space(space)
    advice = f"write the file again with 'nas-ext lab space export {space.name} --format nni'"
    for label in [*expected, *search_space]:
        if expected.get(label) != search_space.get(label):
            raise SpaceError(
                f"{label!r} is {search_space.get(label)!r} in the experiment's search space, but"
                f" {expected.get(label)!r} in space {space.name!r}; {advice}"
            )
