"""Tuners of small searches, and a manager that drives them as NNI's dispatcher does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from nas_core.search.strategies.steady import SteadySearch
from nas_core.space import get_space
from nas_core.space.labels import architecture_of
from nni_ext.hpo.search_space import nni_search_space

nni = pytest.importorskip("nni", reason="NNI is not installed")

from nni_ext.hpo.tuner import SearchTuner  # noqa: E402

SPACE = get_space("hat_small")
FILE = json.loads(json.dumps(nni_search_space(SPACE)))
SMALL = {"population": 14, "parents": 4, "iterations": 4}


def evolution(**changes: Any) -> SearchTuner:
    return SearchTuner(**{"strategy": "evolution", "space": "hat_small", **SMALL, **changes})


def ranknas(**changes: Any) -> SearchTuner:
    settings: dict[str, Any] = {
        "samples": 12,
        "rounds": 2,
        "per_round": 6,
        "candidates": 50,
        "generations": 2,
        "children": 10,
    }
    return SearchTuner(**{"strategy": "ranknas", "space": "hat_small", **settings, **changes})


def random(**changes: Any) -> SearchTuner:
    return SearchTuner(**{"strategy": "random", "space": "hat_small", "evaluations": 30, "batch": 10, **changes})


def quality(parameters: dict[str, Any]) -> float:
    codes = SPACE.encode(architecture_of(SPACE, parameters), "layers")[0]
    return float(((codes - np.linspace(0.3, 0.9, len(codes))) ** 2).sum())


class Manager:
    """What NNI's dispatcher does with a tuner, one call at a time."""

    def __init__(self, tuner: SearchTuner, search_space: dict[str, Any] = FILE) -> None:
        self.tuner = tuner
        tuner.update_search_space(search_space)
        self.started: dict[int, dict[str, Any]] = {}
        self.results: list[tuple[dict[str, Any], float]] = []

    @property
    def search(self) -> SteadySearch:
        search: SteadySearch | None = self.tuner._search  # private: NNI receives its proposals only
        assert search is not None
        return search

    def start(self) -> dict[str, Any] | None:
        try:
            parameters = self.tuner.generate_parameters(len(self.started), st_callback=None)
        except nni.NoMoreTrialError:
            return None
        self.started[len(self.started)] = parameters
        return json.loads(json.dumps(parameters))  # type: ignore[no-any-return]

    def end(self, number: int, value: Any = None, success: bool = True) -> None:
        if value is not None:
            self.tuner.receive_trial_result(number, self.started[number], value, customized=False, trial_job_id="x")
        self.tuner.trial_end(number, success)

    def run(self, most: int = 1000) -> list[dict[str, Any]]:
        """One trial after the other; their parameters."""
        created = []
        while len(created) < most and (parameters := self.start()) is not None:
            number = len(self.started) - 1
            self.end(number, {"default": quality(parameters), "other": 1.0})
            self.results.append((parameters, quality(parameters)))
            created.append(parameters)
        return created
