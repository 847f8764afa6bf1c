"""A trained supernet as what a study optimises."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nas_core.errors import ConfigError, NasExtError
from nas_core.jobs import Failure
from nas_core.search.constraints import Limits, constraints_of
from nas_core.search.journal import plain_metrics
from nas_core.search.limits import costs_on_paper
from nas_core.space import Architecture
from nas_core.supernet.host import Supernet
from optuna_ext.beats import STALE_S, Heart
from optuna_ext.compat import optuna_module, set_constraint
from optuna_ext.genes import suggest_architecture
from optuna_ext.history import ERROR

_log = logging.getLogger(__name__)


def as_objective(
    supernet: Supernet,
    metrics: Sequence[str] = ("loss",),
    *,
    limits: Limits = (),
    costs: Mapping[str, Callable[[Architecture], float]] | None = None,
    stale_s: float = STALE_S,
) -> Callable[[Any], float | tuple[float, ...]]:
    """An objective for ``study.optimize``: the metrics of a supernet's subnet, whatever sampler the study has.

    All metrics become user attributes of the trial (as ``loss``, ``params_m``, ``latency_ms``), and so does
    ``architecture``, its key. A limit is checked before anything is evaluated: a trial outside is pruned, which a
    sampler of ours never proposes. An evaluation that fails, or gives no number, leaves the reason in ``error``, and
    its trial failed; the study goes on.

    Args:
        supernet: opened by :func:`nas_core.supernet.open_supernet`, or anything with ``space`` and ``evaluate``.
        metrics: the study's values in their order, of the supernet's metrics, ``costs`` and what is limited.
        limits: hard limits, as a sampler takes them; what they predict is a metric as well.
        costs: name -> function of an architecture; default: ``params_m`` and ``flops_g``, where the space's kind of
            network has formulas for them.
        stale_s: seconds without a sign of life after which samplers of ours take the worker for lost. One that wakes
            up after that finds its trial failed, and Optuna ends its ``study.optimize`` with "Cannot tell a FAIL
            trial"; start it again, or give more seconds where machines sleep.

    Raises:
        ConfigError: no metric is named. ConstraintError: malformed limits. MissingHostError: Optuna is not installed.
    """
    optuna = optuna_module("a supernet as an objective")
    if isinstance(metrics, str) or not metrics:
        raise ConfigError(f"metrics are {metrics!r}; expected a list of at least one name, as ['loss']")
    space, constraints = supernet.space, constraints_of(supernet.space, limits)
    on_paper = costs_on_paper(space) if costs is None else costs

    def objective(trial: Any) -> float | tuple[float, ...]:
        with Heart(trial.storage, trial._trial_id, stale_s):
            return judged(trial)

    def judged(trial: Any) -> float | tuple[float, ...]:
        architecture = suggest_architecture(trial, space)
        trial.set_user_attr("architecture", architecture.key)
        row = space.rows([architecture])
        known = {name: float(cost(architecture)) for name, cost in on_paper.items()}
        limited = {one.name: float(one.values(row)[0]) for one in constraints}
        _attach(trial, {**known, **limited})
        for one in constraints:
            value = limited[one.name]
            set_constraint(trial, one.name, value - one.limit if math.isfinite(value) else math.inf)
        if outside := [one.label for one in constraints if not limited[one.name] <= one.limit]:
            raise optuna.TrialPruned(f"outside {', '.join(outside)}; nothing was evaluated")
        found, error = _evaluated(supernet, architecture)
        everything = {**known, **limited, **found}
        _attach(trial, found)
        absent = [name for name in metrics if everything.get(name) is None]
        if error or absent:
            trial.set_user_attr(ERROR, error or f"{absent[0]} is missing or no number")
            return math.nan if len(metrics) == 1 else (math.nan,) * len(metrics)
        values = tuple(float(everything[name]) for name in metrics)
        return values[0] if len(values) == 1 else values

    return objective


def _evaluated(supernet: Supernet, architecture: Architecture) -> tuple[dict[str, Any], str]:
    """Metrics, and why there are none; errors of the user's end the study."""
    try:
        return dict(plain_metrics(supernet.evaluate(architecture))), ""
    except NasExtError:
        raise
    except Exception as error:
        _log.debug("evaluation of %s failed", architecture.key, exc_info=True)
        return {}, Failure.of(error).reason


def _attach(trial: Any, metrics: Mapping[str, Any]) -> None:
    for name, value in metrics.items():
        if value is not None and math.isfinite(value):
            trial.set_user_attr(name, value)
