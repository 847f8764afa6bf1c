"""Objective functions that evaluate subnets of a trained supernet."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nas_core.errors import ConfigError
from nas_core.jobs import Failure
from nas_core.optional import require
from nas_core.search.constraints import Limits, constraints_of
from nas_core.search.engine import attempt
from nas_core.search.journal import plain_metrics
from nas_core.search.limits import costs_on_paper
from nas_core.space import Architecture
from nas_core.supernet.host import Supernet
from optuna_ext.genes import suggest_architecture
from optuna_ext.history import ERROR


def as_objective(
    supernet: Supernet,
    metrics: Sequence[str] = ("loss",),
    *,
    limits: Limits = (),
    costs: Mapping[str, Callable[[Architecture], float]] | None = None,
) -> Callable[[Any], float | tuple[float, ...]]:
    """Return an objective for ``study.optimize`` that suggests an architecture and evaluates its subnet.

    All metrics become user attributes of the trial. A trial that violates a limit is pruned without an evaluation. A
    failed evaluation fails the trial and sets its user attribute ``error``.

    Args:
        supernet: an object with ``space`` and ``evaluate``.
        metrics: names of the objective values: metrics of the supernet, or names in ``costs`` or ``limits``.
        limits: hard constraints, as of :class:`SearchSampler`; the predicted values become metrics.
        costs: name -> function of an architecture; default: ``params_m`` and ``flops_g``, if they can be computed.
    """
    optuna = require("optuna", "a supernet as an objective", "optuna")
    if isinstance(metrics, str) or not metrics:
        raise ConfigError(f"metrics are {metrics!r}; expected a list of at least one name, such as ['loss']")
    space, constraints = supernet.space, constraints_of(supernet.space, limits)
    formulas = costs_on_paper(space) if costs is None else costs

    def objective(trial: Any) -> float | tuple[float, ...]:
        architecture = suggest_architecture(trial, space)
        trial.set_user_attr("architecture", architecture.key)
        row = space.rows([architecture])
        all_metrics: dict[str, Any] = {name: float(cost(architecture)) for name, cost in formulas.items()}
        all_metrics |= {constraint.name: float(constraint.values(row)[0]) for constraint in constraints}
        _attach(trial, all_metrics)
        violated = []
        for constraint in constraints:
            value = all_metrics[constraint.name]
            if hasattr(trial, "set_constraint"):  # from Optuna 5 on
                excess = value - constraint.limit if math.isfinite(value) else math.inf
                trial.set_constraint(constraint.name, excess)
            if not value <= constraint.limit:
                violated.append(constraint.label)
        if violated:
            raise optuna.TrialPruned(f"the architecture violates {', '.join(violated)}; it was not evaluated")
        outcome = attempt(lambda candidate: plain_metrics(supernet.evaluate(candidate)), architecture)
        error = outcome.reason if isinstance(outcome, Failure) else ""
        results: Mapping[str, Any] = {} if isinstance(outcome, Failure) else outcome
        all_metrics |= results
        _attach(trial, results)
        missing = [name for name in metrics if all_metrics.get(name) is None]
        if error or missing:
            trial.set_user_attr(ERROR, error or f"metric {missing[0]} is missing or not a number")
            return math.nan if len(metrics) == 1 else (math.nan,) * len(metrics)
        values = tuple(float(all_metrics[name]) for name in metrics)
        return values[0] if len(values) == 1 else values

    return objective


def _attach(trial: Any, metrics: Mapping[str, Any]) -> None:
    for name, value in metrics.items():
        if value is not None and math.isfinite(value):
            trial.set_user_attr(name, value)
