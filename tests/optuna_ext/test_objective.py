"""A supernet as an objective: metrics as attributes, limits before evaluations, failures that say why."""

from __future__ import annotations

import optuna
import pytest

from nas_core.errors import NasExtError
from nas_core.space import Architecture
from optuna_ext import HATEvolutionSampler, architecture_of, as_objective
from tests.cli.searching import SPACE as TRANSLATION
from tests.optuna_ext.study import SMALL, SPACE, limit, quality, size, supernet
from tests.toys import ToySupernet


def test_a_trial_holds_the_architecture_and_all_its_metrics() -> None:
    study = optuna.create_study(sampler=HATEvolutionSampler(SPACE, limit(), **SMALL))
    study.optimize(as_objective(supernet(nll_loss=4.0), limits=limit(), costs={"doubled": lambda a: 2 * size(a)}), 5)
    for trial in study.trials:
        architecture = architecture_of(trial, SPACE)
        attributes = {"architecture": architecture.key, "loss": quality(architecture), "nll_loss": 4.0}
        assert trial.user_attrs == {**attributes, "size": size(architecture), "doubled": 2 * size(architecture)}
        assert trial.value == quality(architecture)
        assert getattr(trial, "constraints", None) in (
            {"size": size(architecture) - 60.0},
            None,
        )  # None before Optuna 5


def test_costs_on_paper_are_metrics_by_themselves() -> None:
    study = optuna.create_study(directions=["minimize"] * 2, sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(as_objective(ToySupernet(TRANSLATION), ["loss", "params_m"]), n_trials=3)
    assert all({"params_m", "flops_g"} <= set(trial.user_attrs) for trial in study.trials)
    assert study.trials[0].values == [1.0, study.trials[0].user_attrs["params_m"]]


def test_with_any_sampler_nothing_outside_a_limit_is_evaluated() -> None:
    toy = supernet()
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(as_objective(toy, limits=limit(30.0), costs={}), n_trials=30)
    assert all(size(one) <= 30 for one in toy.evaluated)
    states = {trial.state.name for trial in study.trials}
    assert states == {"COMPLETE", "PRUNED"} and len(toy.evaluated) < 30


def test_a_failure_says_why_and_the_study_goes_on() -> None:
    def score(architecture: Architecture) -> dict[str, float]:
        if architecture["attention"] == "linear":
            raise RuntimeError("out of\nmemory")
        return {"loss": float("nan") if architecture.number("layers") == 1 else quality(architecture)}

    toy = ToySupernet(SPACE, score)
    study = optuna.create_study(sampler=HATEvolutionSampler(SPACE, **SMALL))
    study.optimize(as_objective(toy, costs={}), n_trials=30)
    errors = {trial.user_attrs["error"] for trial in study.trials if trial.state.name == "FAIL"}
    assert errors == {"RuntimeError: out of memory", "metric loss is missing or not a number"}
    assert len(set(toy.evaluated)) == len(toy.evaluated) == 30
    assert study.best_value == min(quality(one) for one in toy.evaluated if "loss" in score_of(toy, one))


def score_of(toy: ToySupernet, architecture: Architecture) -> dict[str, float]:
    """What of the toy's scores is a number."""
    try:
        return {name: value for name, value in toy.score(architecture).items() if value == value}
    except RuntimeError:
        return {}


def test_errors_of_the_user_end_the_study() -> None:
    def score(architecture: Architecture) -> dict[str, float]:
        raise NasExtError("no split 'valid'; give another")

    study = optuna.create_study()
    with pytest.raises(NasExtError, match="no split"):
        study.optimize(as_objective(ToySupernet(SPACE, score), costs={}), n_trials=2)
