"""Model spaces of NNI as search spaces, and samples as architectures."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from torch import nn

pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")

import nni
from nni.mutable import MutableAnnotation
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.hub.pytorch import DARTS, AutoFormer, NasBench101, NasBench201
from nni.nas.nn.pytorch import InputChoice, LayerChoice, ModelSpace, Repeat
from nni.nas.space import RawFormatModelSpace, SimplifiedModelSpace, model_context

from nas_core.space import SearchSpace
from nas_core.space.labels import architecture_of
from nni_ext import as_model_space
from nni_ext.nas.spaces import ArchitectureSpace, flat_space, flatten


class Mixed(ModelSpace):  # type: ignore[misc]
    """Choices of all kinds of values."""

    def __init__(self) -> None:
        super().__init__()
        self.add_mutable(nni.choice("kernel", [(1, 1), (3, 3)]))
        self.add_mutable(nni.choice("bias", [True, False]))
        self.add_mutable(nni.choice("norm", [None, "batch"]))
        self.layer = LayerChoice([nn.Identity(), nn.ReLU()], label="layer")
        self.inputs = InputChoice(4, 2, label="inputs")
        self.repeat = Repeat(nn.Identity(), (1, 3), label="times")

    def freeze(self, sample: dict[str, Any]) -> Mixed:
        with model_context(sample):
            return Mixed()


def returned(flat: Any, count: int = 50) -> None:
    """Rows become samples that JSON can hold; different rows have different samples."""
    rows = np.unique(flat.space.sample_rows(np.random.default_rng(0), count), axis=0)
    samples = [flat.sample(architecture) for architecture in flat.space.architectures(rows)]
    assert samples == [flat.sample_of_row(row) for row in rows]
    assert len({json.dumps(sample) for sample in samples}) == len(rows)


@pytest.mark.parametrize("kind", [RawFormatModelSpace, SimplifiedModelSpace])
def test_values_of_any_kind(kind: Any) -> None:
    space = kind.from_model(Mixed(), FunctionalEvaluator(print, lr=nni.uniform("lr", 0.0, 1.0)))
    flat = flatten(space)
    assert not flat.checked
    options = {choice.name: choice.options[0] for choice in flat.space.choices}
    assert options["kernel"] == ("[1, 1]", "[3, 3]")
    assert options["bias"] == ("True", "False")
    assert options["norm"] == ("None", "batch")
    assert options["times"] == (1, 2, 3)
    assert options["inputs"] == ("[0, 1]", "[0, 2]", "[0, 3]", "[1, 2]", "[1, 3]", "[2, 3]")
    assert len(options["lr"]) == 15 and options["lr"][7] == pytest.approx(0.5)
    returned(flat)
    for row in flat.space.sample_rows(np.random.default_rng(1), 20):
        model = space.freeze(flat.sample_of_row(row))
        assert type(model.sample["kernel"]) is tuple and type(model.sample["bias"]) is bool
        model.executable_model()


@pytest.mark.parametrize(
    ("make", "shares"),
    [
        (lambda: NasBench201(stem_out_channels=4, num_modules_per_stack=1), (1.0, 1.0)),
        (lambda: DARTS(width=4, num_cells=3, dataset="cifar"), (1.0, 1.0)),
        (lambda: AutoFormer(search_depth=(2, 3)), (1.0, 1.0)),
        (lambda: NasBench101(stem_out_channels=8, num_stacks=1, num_modules_per_stack=1), (0.3, 0.9)),
    ],
)
def test_spaces_of_the_hub(make: Any, shares: tuple[float, float]) -> None:
    space = SimplifiedModelSpace.from_model(make(), None)
    flat = flatten(space)
    assert flat.checked == any(isinstance(one, MutableAnnotation) for one in space.simplify().values())
    returned(flat, 20)
    rows = flat.space.sample_rows(np.random.default_rng(0), 100)
    valid = [row for row in rows if space.contains(flat.sample_of_row(row))]
    assert shares[0] <= len(valid) / len(rows) <= shares[1]
    assert space.freeze(flat.sample_of_row(valid[0])).status == "frozen"


@pytest.mark.parametrize("kind", [RawFormatModelSpace, SimplifiedModelSpace])
def test_own_spaces_are_themselves(kind: Any, space: SearchSpace) -> None:
    executable = kind.from_model(as_model_space(space), FunctionalEvaluator(print, lr=nni.choice("lr", [0.1, 0.2])))
    flat = flatten(executable)
    assert flat.space.choices[:-1] == space.choices and flat.space.fixed == space.fixed
    assert flat.space.choices[-1].name == "lr"
    only = flatten(kind.from_model(as_model_space(space), None))
    assert only.space == space == flatten(as_model_space(space)).space
    for row in space.sample_rows(np.random.default_rng(0), 20):
        sample = only.sample_of_row(row)
        assert architecture_of(space, sample) == space.architecture(row)
        assert executable.freeze({**sample, "lr": 0.1}).executable_model().architecture == space.architecture(row)


def test_names_are_the_same_in_every_process() -> None:
    flat = flat_space("x", {"a": [nn.ReLU(), nn.ReLU()], "b": [np.int64(3), np.int64(5)], "c": [1, "1"], "d": [0.5]})
    assert [choice.options[0] for choice in flat.space.choices] == [
        ("0:ReLU", "1:ReLU"), (3, 5), ("0:1", "1:1"), (0.5,),
    ]  # fmt: skip
    assert flat.sample_of_row(np.array([1, 1, 1, 0])) == {"a": flat.values[0][1], "b": 5, "c": "1", "d": 0.5}


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
