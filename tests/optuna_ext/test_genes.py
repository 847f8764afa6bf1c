"""Genes as distributions, and architectures of trials."""

from __future__ import annotations

import numpy as np
import optuna
import pytest

from nas_core.space import get_space
from nas_core.space.labels import parameters_of
from optuna_ext import architecture_of, suggest_architecture
from optuna_ext.genes import distributions_of
from tests.optuna_ext.study import SPACE


@pytest.mark.parametrize(
    "space", [SPACE, get_space("hat_small"), get_space("vit_cifar10_small")], ids=lambda one: one.name
)
def test_parameters_of_an_architecture_and_back(space) -> None:
    distributions = distributions_of(space)
    for architecture in space.architectures(space.sample_rows(np.random.default_rng(0), 20)):
        parameters = parameters_of(space, architecture)
        assert set(parameters) <= set(distributions)
        assert all(value in distributions[name].choices for name, value in parameters.items())
        assert architecture_of(parameters, space) == architecture
        trial = optuna.trial.FixedTrial(parameters)
        assert suggest_architecture(trial, space) == architecture
        assert trial.params == parameters  # no more were asked for


def test_layers_that_do_not_exist_are_no_parameters() -> None:
    trial = optuna.trial.FixedTrial({"layers": 1, "width.0": 8, "width.1": 16, "attention": "linear"})
    architecture = suggest_architecture(trial, SPACE)
    assert architecture["width"] == (8,) and "width.1" not in trial.params
    assert architecture_of({**trial.params, "width.1": 32, "lr": 0.1}, SPACE) == architecture
