"""What the trials of a study say to a search: results, what is under way, and what was known when.

Everything is read from the storage at each call; what is kept between calls only saves time.
"""

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
"""System attribute of a trial: its architecture as a row of option indices, from before its first parameter."""
OPENED = "nas_ext:opened"
"""System attribute of a trial: what was known when it, as the first one, was of a new generation."""
ERROR = "error"
"""User attribute of a trial whose evaluation failed: why. Without it, a failed trial is one whose worker was lost."""
WITHDRAWN = "nas_ext:withdrawn"
"""System attribute of a trial that was given up as another worker had its architecture."""
FAILING = "nas_ext:failing"
"""System attribute of a running trial whose evaluation failed here: why, which is not said of the architecture yet."""
TRIES = 3
"""An architecture over which so many workers were lost counts as failed."""


@dataclass
class Read:
    """The trials of a study as a search sees them."""

    results: dict[Architecture, Mapping[str, Any] | None] = field(default_factory=dict)
    """Oldest first; None for a failure."""
    errors: dict[Architecture, str] = field(default_factory=dict)
    """Why an evaluation failed, where that is known."""
    held: dict[int, Architecture] = field(default_factory=dict)
    """Number of a trial that runs or waits -> its architecture."""
    failing: set[int] = field(default_factory=set)
    """Those of them whose worker has yet to show that it is not the worker that fails."""
    undecided: set[int] = field(default_factory=set)
    """Numbers of trials that run and have no architecture yet."""
    openings: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Generation -> what was known when it was proposed; of several records, the one of the earliest trial."""

    def taken(self, number: int) -> set[Architecture]:
        """What other trials than this one hold or have held."""
        return {*self.results, *(one for other, one in self.held.items() if other != number)}


class History:
    """Reads the trials of a study over one space."""

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self._known: dict[Any, Architecture | None] = {}

    def read(self, trials: Sequence[Any], metrics: Sequence[str], signs: Sequence[int]) -> Read:
        """What these trials say.

        Args:
            trials: as ``study.get_trials`` gives them, by number.
            metrics: names of the values of trials.
            signs: 1 for values that are minimised, -1 for others.
        """
        found, lost = Read(), Counter[Architecture]()
        for trial in trials:
            for generation, others in (trial.system_attrs.get(OPENED) or {}).items():
                found.openings.setdefault(int(generation), tuple(others))
            architecture = self._architecture(trial)
            state = trial.state.name
            if not trial.state.is_finished():
                if architecture is not None:
                    found.held[trial.number] = architecture
                    if FAILING in trial.system_attrs:
                        found.failing.add(trial.number)
                elif state == "RUNNING" and not trial.params:
                    found.undecided.add(trial.number)
            elif architecture is not None and found.results.get(architecture) is None:
                if state == "COMPLETE":
                    values = zip(metrics, trial.values, signs, strict=True)
                    told = {name: sign * value for name, value, sign in values}
                    found.results[architecture] = {**_numbers(trial.user_attrs), **told}
                elif state == "PRUNED" or ERROR in trial.user_attrs:
                    found.results[architecture] = None
                    found.errors[architecture] = str(trial.user_attrs.get(ERROR, "pruned"))
                elif WITHDRAWN not in trial.system_attrs:
                    lost[architecture] += 1
                    if lost[architecture] >= TRIES:
                        found.results[architecture] = None
        return found

    def _architecture(self, trial: Any) -> Architecture | None:
        """What a trial evaluates: by its parameters, else by those that were enqueued, else by its claim."""
        key = trial.number, trial.datetime_start  # of one study; another one begins at other moments
        finished = trial.state.is_finished()
        if finished and key in self._known:
            return self._known[key]
        found = self._of(trial.params) or self._of(trial.system_attrs.get("fixed_params") or {})
        if found is None and not finished and (row := trial.system_attrs.get(CLAIM)) is not None:
            found = self.space.architecture(np.array(row, np.int16))
        if finished:
            self._known[key] = found
        return found

    def _of(self, parameters: Mapping[str, Any]) -> Architecture | None:
        try:
            return architecture_of(parameters, self.space) if parameters else None
        except ArchitectureError:
            return None


def metric_names(study: Any, given: Sequence[str] | None = None) -> tuple[str, ...]:
    """Names of a study's values: as given, else as the study has them, else ``loss``, ``objective_1``, ..

    Raises:
        ValueError: not as many are given as the study has.
    """
    count = len(study.directions)
    if given is None:
        return tuple(study.metric_names or ("loss", *(f"objective_{place}" for place in range(1, count))))
    if len(given) != count:
        raise ValueError(f"{len(given)} metrics are named {', '.join(given)}, but the study has {count} values")
    return tuple(given)


def _numbers(attributes: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in attributes.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
