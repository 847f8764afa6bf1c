"""Hard constraints of a search on values of NNI's profilers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nas_core.errors import ConfigError, NasExtError
from nas_core.search import Constraint
from nas_core.space.slots import Rows
from nni_ext.compat import nni_module
from nni_ext.graphs import Sample
from nni_ext.nas.spaces import FlatSpace

_FEATURE = "limiting searches with NNI's profilers"
PROBES, SAMPLES = 10, 200
"""Number of valid samples with which a profiler is tested, and of random samples drawn to find them."""


def validity_constraint(flat: FlatSpace, model_space: Any) -> Constraint:
    """Return a constraint that excludes samples that the model space rejects."""
    return Constraint(
        "invalid",
        0.5,
        lambda rows: np.array([0.0 if model_space.contains(flat.sample_of_row(row)) else 1.0 for row in rows]),
    )


def limit_constraint(flat: FlatSpace, model_space: Any, name: str, profiler: Any, limit: float) -> Constraint:
    """Return a constraint ``profiler.profile(sample) <= limit``, which excludes samples that cannot be profiled.

    Args:
        name: name of the cost, with its unit if it has one: ``flops``, ``params``, ``latency_ms``.
        profiler: ``nni.nas.profiler.Profiler`` of the searched model space.
        limit: largest allowed value, in the profiler's unit.
    """
    _probe(flat, model_space, name, profiler)

    def profile(sample: Sample) -> float:
        try:
            return float(profiler.profile(sample))
        except (NasExtError, nni_module("nni.mutable", _FEATURE).SampleValidationError):
            return math.nan

    def profile_rows(rows: Rows) -> Sequence[float]:
        samples = [flat.sample_of_row(row) for row in rows]
        if hasattr(profiler, "profile_many"):
            with contextlib.suppress(NasExtError):  # because of one of the samples
                return [float(value) for value in profiler.profile_many(samples)]
        return [profile(sample) for sample in samples]

    batch_size = getattr(profiler, "batch_size", 0)
    return Constraint.cached(name, float(limit), profile_rows, batch_size)


def _probe(flat: FlatSpace, model_space: Any, name: str, profiler: Any) -> None:
    rows = [flat.space.row(flat.space.smallest()), *flat.space.sample_rows(np.random.default_rng(0), SAMPLES)]
    samples = (flat.sample_of_row(row) for row in rows)
    valid = [sample for sample in samples if not flat.checked or model_space.contains(sample)][:PROBES]
    problem: Exception | str = "NaN"
    for sample in valid:
        try:
            if not math.isnan(float(profiler.profile(sample))):
                return
        except Exception as error:  # profilers raise anything for unknown labels
            problem = error
    if valid:
        raise ConfigError(
            f"the profiler of {name!r} returned no number for samples of this model space ({problem!r}); create"
            " it with the model space that is searched, and return one number from profile"
        )
