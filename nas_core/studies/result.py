"""What a study finds: a table, figures over all of it, and what is drawn, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Measure(NamedTuple):
    """One column of a study's table."""

    key: str
    """Key of the rows, also in JSON."""
    header: str
    """What people read, with the unit."""
    spec: str = ""
    """Format of its numbers, such as ``.3f``; empty for texts."""


@dataclass(frozen=True)
class Bars:
    """A bar for each name, one colour for each series."""

    series: Mapping[str, Mapping[str, float]]
    """Legend -> name -> value."""
    label: str


@dataclass(frozen=True)
class Squares:
    """A square of numbers for each panel, as colours: a value for each pair of names."""

    names: Sequence[str]
    panels: Mapping[str, Sequence[Sequence[float]]]
    label: str


@dataclass(frozen=True)
class Pairs:
    """Points of two values each, one colour for each series."""

    series: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    """Legend -> (x, y)."""
    x_label: str
    y_label: str
    equal: bool = True
    """Whether the two would be equal at best, so that the line on which they are is drawn."""


@dataclass(frozen=True)
class Lines:
    """Curves over the same axis, a panel for each thing, one colour for each series."""

    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]]
    """Title -> legend -> (x, y)."""
    levels: Mapping[str, float]
    """Title -> the value that its curves are compared with, drawn as a line."""
    x_label: str
    y_label: str
    level_label: str = ""
    """What the levels are."""


Picture = Bars | Squares | Pairs | Lines


@dataclass(frozen=True)
class StudyResult:
    """What one study has found of one or several supernets."""

    columns: Sequence[Measure]
    rows: Sequence[Mapping[str, Any]]
    """What was measured, a row for each thing it was measured on."""
    summary_columns: Sequence[Measure]
    summary: Sequence[Mapping[str, Any]]
    """The figures of each supernet."""
    picture: Picture
    notes: Sequence[str] = ()
    """Sentences about what the figures are, and where they come from."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What only JSON has."""
