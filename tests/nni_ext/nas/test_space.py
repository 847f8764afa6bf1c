"""Spaces of ``nas_core`` as model spaces of NNI."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")

import nni
from nni.mutable import SampleValidationError
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.space import SimplifiedModelSpace, model_context
from nni.nas.strategy import GridSearch, Random

from nas_core.models import params_m
from nas_core.space import Choice, SearchSpace, get_space, list_spaces
from nni_ext import ArchitectureSpace, architecture_of, as_model_space


def parameters(model: Any) -> None:
    """What a user's evaluator may look like."""
    nni.report_final_result(-params_m(model.architecture))


@pytest.mark.parametrize("name", list_spaces())
def test_one_mutable_for_each_slot(name: str) -> None:
    space = get_space(name)
    mutables = as_model_space(space).simplify()
    assert list(mutables) == space.feature_names("layers")
    options = [list(row) for choice in space.choices for row in choice.options]
    assert [mutable.values for mutable in mutables.values()] == options


def test_samples_become_architectures(space: SearchSpace) -> None:
    executable = SimplifiedModelSpace.from_model(as_model_space(space), None)
    stream, seen = np.random.RandomState(0), set()
    for _ in range(20):
        model = executable.random(random_state=stream)
        architecture = architecture_of(space, model.sample)
        assert architecture in space
        assert model.executable_model().architecture == architecture
        assert as_model_space(space).freeze(model.sample).architecture == architecture
        with model_context(model.sample):  # as NNI's documentation rebuilds a model
            assert as_model_space(space).architecture == architecture
        seen.add(architecture)
    assert len(seen) == 20


def test_what_another_process_receives(space: SearchSpace) -> None:
    model = SimplifiedModelSpace.from_model(as_model_space(space), None).random()
    received = nni.load(nni.dump(model))
    assert received.model.trace_symbol is ArchitectureSpace
    assert received.executable_model().architecture == model.executable_model().architecture


def test_nni_refuses_what_is_outside(space: SearchSpace) -> None:
    made = as_model_space(space)
    sample = {label: mutable.values[0] for label, mutable in made.simplify().items()}
    assert made.freeze(sample).architecture == architecture_of(space, sample)
    for wrong in ({**sample, "decoder.layers": 9}, {k: v for k, v in sample.items() if k != "decoder.layers"}):
        with pytest.raises(SampleValidationError):
            made.freeze(wrong)


def test_strategies_and_own_evaluators(search: Any, space: SearchSpace) -> None:
    strategy = Random(seed=0)
    run = search(as_model_space(space), FunctionalEvaluator(parameters), strategy, 6)
    models = list(strategy.list_models())
    assert len(models) == 6
    best = run.export_top_models(top_k=1, formatter="instance")[0].architecture
    assert models[0].metric == -params_m(best)


def test_names_and_fixed_genes(search: Any) -> None:
    space = SearchSpace(
        "named",
        [Choice.make("kind", ["a", "b"]), Choice.make("layers", [0, 1]), Choice.make("width", [0.5, 1], "layers", 1)],
        {"heads": 4},
    )
    strategy, seen = GridSearch(seed=0), []
    search(as_model_space(space), FunctionalEvaluator(lambda model: seen.append(model.architecture)), strategy, 20)
    assert len(seen) == 8
    assert len(set(seen)) == space.cardinality() == 6
    assert {architecture["heads"] for architecture in seen} == {4}
