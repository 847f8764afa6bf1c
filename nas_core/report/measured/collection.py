"""Measured latencies in the form that the page is made of, whichever file they come from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.space import Architecture, SearchSpace

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MeasuredNetwork:
    """One network or architecture with its latency; what is not known is None."""

    name: str
    family: str
    latency_ms: float
    """Drift divided out, in the state of the machine that was usual over the whole collection."""
    raw_ms: float | None
    """The latency as it was measured."""
    reference_ms: float
    """What the reference took around it."""
    error_percent: float | None
    """Standard error of the latency."""
    when: float | None
    """Seconds since 1970."""
    params_m: float | None = None
    flops_g: float | None = None
    nodes: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    parts_ms: Mapping[str, float] = field(default_factory=dict)
    architecture: Architecture | None = None
    again_percent: float | None = None
    """By how much a second measurement, drift divided out as well, was longer."""
    again_raw_percent: float | None = None
    """The same of the times as they were measured."""


@dataclass(frozen=True)
class Collection:
    """All networks of a folder of ``nas-ext latency dataset`` in one runtime, or all architectures of a file of
    ``nas-ext latency collect``."""

    path: Path
    what: str
    """What its members are called: ``networks`` or ``architectures``."""
    runtime: str
    runtimes: Sequence[str]
    """All that a folder was measured in."""
    facts: Mapping[str, Any]
    """When, where and how it was measured, for people."""
    details: Mapping[str, Any]
    """All settings and versions."""
    error_is: str
    """How the standard error was found."""
    networks: Sequence[MeasuredNetwork]
    skipped: Sequence[tuple[str, str, str]] = ()
    """Name, family and reason of what was not measured."""
    machine: Mapping[str, Any] = field(default_factory=dict)
    space: SearchSpace | None = None
    """The space of architectures; None of networks."""
    warnings: Sequence[str] = ()
    """What a reader has to know before anything else."""

    @property
    def families(self) -> list[str]:
        """Each once, in the order of the file; those of skipped networks alone at the end."""
        return list(dict.fromkeys([*(one.family for one in self.networks), *(family for _, family, _ in self.skipped)]))

    def of(self, family: str) -> list[int]:
        """Places of the networks of a family."""
        return [place for place, one in enumerate(self.networks) if one.family == family]

    def values(self, name: str) -> Floats:
        """A field of all networks ``(n,)``; NaN where it is not known."""
        found = [getattr(one, name) for one in self.networks]
        return np.array([math.nan if value is None else value for value in found], np.float64)
