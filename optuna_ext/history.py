"""Conversion of Optuna trials to results and running architectures of a search."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nas_core.errors import ArchitectureError
from nas_core.space import Architecture, SearchSpace
from optuna_ext.genes import architecture_of

CLAIM = "nas_ext:architecture"
"""System attribute: architecture of a trial as a row of option indices, written before its parameters."""
OPENED = "nas_ext:opened"
"""System attribute of the first trial of a generation: architectures that had a result when the generation began."""
ERROR = "error"
"""User attribute: message of a failed evaluation. A failed trial without it is one whose worker stopped."""
TRIES = 3
"""Number of stopped workers after which their common architecture counts as failed."""


@dataclass
class Trials:
    """Results and running architectures of an Optuna study."""

    results: dict[Architecture, Mapping[str, Any] | None] = field(default_factory=dict)
    """Architecture -> metrics, oldest first; None for a failed evaluation."""
    running: dict[int, Architecture] = field(default_factory=dict)
    """Number of a running or waiting trial -> its architecture."""
    unclaimed: set[int] = field(default_factory=set)
    """Numbers of running trials without an architecture."""
    openings: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Generation -> keys of the architectures that had a result when it began."""

    def unavailable(self, number: int) -> set[Architecture]:
        running = (architecture for other, architecture in self.running.items() if other != number)
        return {*self.results, *running}


class History:
    """Reader of the trials of a study over one search space."""

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self._cache: dict[Any, Architecture | None] = {}

    def read(self, trials: Sequence[Any], metrics: Sequence[str], signs: Sequence[int]) -> Trials:
        """Read trials, sorted by number.

        Args:
            signs: for each of ``metrics``, 1 to minimise or -1 to maximise it.
        """
        state, stopped = Trials(), Counter[Architecture]()
        for trial in trials:
            for generation, proposals in (trial.system_attrs.get(OPENED) or {}).items():
                state.openings.setdefault(int(generation), tuple(proposals))
            architecture = self._architecture(trial)
            status = trial.state.name
            if not trial.state.is_finished():
                if architecture is not None:
                    state.running[trial.number] = architecture
                elif status == "RUNNING" and not trial.params:
                    state.unclaimed.add(trial.number)
            elif architecture is not None and state.results.get(architecture) is None:
                if status == "COMPLETE":
                    values = zip(metrics, trial.values, signs, strict=True)
                    minimised = {name: sign * value for name, value, sign in values}
                    state.results[architecture] = {**_numbers(trial.user_attrs), **minimised}
                elif status == "PRUNED" or ERROR in trial.user_attrs:
                    state.results[architecture] = None
                else:
                    stopped[architecture] += 1
                    if stopped[architecture] >= TRIES:
                        state.results[architecture] = None
        return state

    def _architecture(self, trial: Any) -> Architecture | None:
        key = trial.number, trial.datetime_start  # start times tell studies apart
        finished = trial.state.is_finished()
        if finished and key in self._cache:
            return self._cache[key]
        architecture = self._parse(trial.params) or self._parse(trial.system_attrs.get("fixed_params") or {})
        if architecture is None and not finished and (row := trial.system_attrs.get(CLAIM)) is not None:
            architecture = self.space.architecture(np.array(row, np.int16))
        if finished:
            self._cache[key] = architecture
        return architecture

    def _parse(self, parameters: Mapping[str, Any]) -> Architecture | None:
        try:
            return architecture_of(parameters, self.space) if parameters else None
        except ArchitectureError:
            return None


def metric_names(study: Any, names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return ``names``; by default the study's metric names, or ``loss``, ``objective_1``, .. if it has none."""
    count = len(study.directions)
    if names is None:
        return tuple(study.metric_names or ("loss", *(f"objective_{index}" for index in range(1, count))))
    if len(names) != count:
        raise ValueError(
            f"got {len(names)} metric names ({', '.join(names)}) for a study with {count} objective values; give one"
            " name per value"
        )
    return tuple(names)


def _numbers(attributes: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in attributes.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
