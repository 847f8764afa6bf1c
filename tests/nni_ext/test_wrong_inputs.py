"""Wrong inputs of the plug-in: the type of the error, and one line that names the value."""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")

from nni.nas.hub.pytorch import NasBench201, ProxylessNAS
from nni.nas.nn.pytorch import ModelSpace
from nni.nas.profiler import Profiler
from nni.nas.space import SimplifiedModelSpace

from nas_core.errors import ArchitectureError, ConfigError, DataError, NasExtError, SpaceError
from nas_core.errors import UnknownChoiceError as Unknown
from nas_core.graph import GraphError
from nas_core.predictor import NNFormerPredictor
from nas_core.space import get_space
from nas_core.space.labels import architecture_of
from nni_ext import NetworkLatencyProfiler, PredictorEvaluator, PredictorProfiler, SearchStrategy, SearchTuner
from nni_ext.graphs import nasbench101_sample, nasbench201_sample
from nni_ext.hpo.check import check_class
from nni_ext.hpo.search_space import check_labels, nni_search_space, space_from_nni
from nni_ext.nas.limits import limit_constraint
from nni_ext.nas.spaces import flat_space, flatten
from tests.nni_ext.test_graphs import CELL_101, CELL_201, changed

SPACE = get_space("hat_small")
SAMPLE = {label: row["_value"][0] for label, row in nni_search_space(SPACE).items()}
CELLS = NasBench201(stem_out_channels=4, num_modules_per_stack=1)
FLAT = flat_space("x", {"a": [1, 2]})
FILE = nni_search_space(SPACE)
ONE = {"_type": "choice", "_value": [1]}


class Silent(Profiler):  # type: ignore[misc]
    def profile(self, sample: Any) -> Any:
        return sample["elsewhere"]


def tuner(**arguments: Any) -> SearchTuner:
    return SearchTuner(**{"strategy": "evolution", "space": "hat_small", **arguments})


def ranknas(**arguments: Any) -> SearchTuner:
    return tuner(strategy="ranknas", **arguments)


def strategy(name: str = "evolution", **arguments: Any) -> SearchStrategy:
    return SearchStrategy(name, **arguments)


WRONG: list[tuple[Any, type[NasExtError], str]] = [
    (lambda: tuner(max_params_m="2"), ConfigError, "max_params_m"),
    (lambda: tuner(strategy="multi-objective", objectives="loss"), ConfigError, "loss"),
    (lambda: nasbench201_sample({}), GraphError, "cell/0_1"),
    (lambda: nasbench201_sample(changed(CELL_201, **{"1_3": "conv_5x5"})), Unknown, "conv_5x5"),
    (lambda: nasbench101_sample(changed(CELL_101, op2="output")), Unknown, "cell/op2"),
    (lambda: nasbench101_sample(changed(CELL_101, input4=[3])), GraphError, "input"),
    (lambda: architecture_of(SPACE, CELL_201), ArchitectureError, "encoder.embed_dim"),
    (lambda: architecture_of(SPACE, SAMPLE | {"decoder.ffn_dim.2": 7}), ArchitectureError, "7"),
    (lambda: flatten(ModelSpace()), SpaceError, "ModelSpace"),
    (lambda: flat_space("x", {"a": []}), SpaceError, "'a'"),
    (lambda: flat_space("x", {"a": [1, 1.0]}), SpaceError, "twice"),
    (lambda: space_from_nni({"x": {"_type": "uniform", "_value": [0, 1]}}), SpaceError, "uniform"),
    (lambda: space_from_nni({"x": {"_type": "randint", "_value": [3, 3]}}), SpaceError, "[3, 3]"),
    (lambda: check_labels(SPACE, {**FILE, "encoder.embed_dim": ONE}), SpaceError, "encoder.embed_dim"),
    (lambda: check_labels(SPACE, {**FILE, "lr": ONE}), SpaceError, "lr"),
    (lambda: tuner(population_size=3), Unknown, "population_size"),
    (lambda: tuner(strategy="HATEvolution"), Unknown, "HATEvolution"),
    (lambda: tuner(iterations="five"), ConfigError, "'five'"),
    (lambda: tuner(objectives=["loss", "latency_ms"]), ConfigError, "evolution"),
    (lambda: tuner(population=3, parents=10), ConfigError, "at most the population, 3"),
    (lambda: tuner(optimize_mode="best"), Unknown, "best"),
    (lambda: tuner(metric="loss", optimize_mode="maximize"), ConfigError, "loss"),
    (lambda: tuner(metric="top1"), ConfigError, "top1"),
    (lambda: tuner(space="hat_smal"), NasExtError, "hat_smal"),
    (lambda: tuner(max_params_m=2, space=None), ConfigError, "max_params_m"),
    (lambda: tuner(max_latency_ms=8), ConfigError, "latency_model"),
    (lambda: tuner(latency_model="no.json", max_latency_ms=8), DataError, "no.json"),
    (lambda: ranknas(ranker="nnformer"), Unknown, "nnformer"),
    (lambda: tuner(strategy="multi-objective"), ConfigError, "default"),
    (lambda: tuner(strategy="multi-objective", objectives=["loss", "loss"]), ConfigError, "loss"),
    (lambda: tuner(strategy="multi-objective", objectives=["-speed", "loss"]), ConfigError, "-speed"),
    (lambda: check_class({}), ConfigError, "tuner"),
    (lambda: check_class({"name": "TPE"}), ConfigError, "tpe_tuner"),
    (lambda: check_class({"name": "Nobodys"}), ConfigError, "Nobodys"),
    (lambda: strategy("hat"), Unknown, "hat"),
    (lambda: strategy(poplation=9), Unknown, "poplation"),
    (lambda: strategy("ranknas", samples=0), ConfigError, "0"),
    (lambda: strategy("multi-objective", objectives=["x", "default"]), ConfigError, "x"),
    (lambda: limit_constraint(flatten(CELLS), CELLS, "a", Silent(None), 1), ConfigError, "elsewhere"),
    (lambda: PredictorProfiler(CELLS, "absent.safetensors"), DataError, "absent.safetensors"),
    (lambda: PredictorProfiler(ProxylessNAS(width_mult=0.5), "x"), SpaceError, "ProxylessNAS"),
    (lambda: NetworkLatencyProfiler(CELLS, torch.zeros(1), "absent.safetensors"), DataError, "absent.safetensors"),
]


@pytest.mark.parametrize(("call", "kind", "value"), WRONG)
def test_wrong_inputs(call: Any, kind: type[NasExtError], value: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert value in str(caught.value) and "\n" not in str(caught.value)


def test_wrong_models_of_an_evaluator(predictor201: NNFormerPredictor, predictor101: NNFormerPredictor) -> None:
    model = SimplifiedModelSpace.from_model(CELLS, None)
    sample = {f"cell/{edge}": "conv_3x3" for edge in ("0_1", "0_2", "1_2", "0_3", "1_3", "2_3")}
    for predictor, given, kind in [
        (predictor201, model, ConfigError),  # it is not frozen
        (predictor201, {}, SpaceError),
        (predictor101, model.freeze(sample), GraphError),
    ]:
        with pytest.raises(kind):
            PredictorEvaluator(predictor).evaluate(given)
