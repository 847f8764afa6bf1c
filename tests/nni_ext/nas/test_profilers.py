"""Predictors in NNI's filters and penalties; graphs against the cells that NNI builds."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")

import nni
from nni.mutable import CategoricalMultiple, SampleValidationError
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.execution import SequentialExecutionEngine
from nni.nas.hub.pytorch import NasBench101
from nni.nas.profiler import Profiler
from nni.nas.space import SimplifiedModelSpace

from nas_core.errors import ConfigError
from nas_core.graph.nasbench101 import nasbench101_graph
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.counts import CountsModel
from nas_core.latency.by_graph.predict import predict_module_latency
from nas_core.models.translation.kind import translation_graph
from nas_core.predictor import NNFormerPredictor
from nas_core.space import SearchSpace
from nni_ext import NetworkLatencyProfiler, PredictorProfiler, SearchStrategy, as_model_space
from nni_ext.graphs import nasbench101_sample, nasbench201_sample, nasbench201_unpruned_sample
from tests.latency.by_graph.toy import toy_networks

EDGES = ("0_1", "0_2", "1_2", "0_3", "1_3", "2_3")


@pytest.fixture(scope="module")
def nasbench101() -> Any:
    return NasBench101(stem_out_channels=8, num_stacks=1, num_modules_per_stack=1)


def draw(model_space: Any, count: int, fine: bool = False) -> list[dict[str, Any]]:
    """Random samples that the space accepts; of NAS-Bench-101 many are not."""
    stream, samples = np.random.RandomState(0), []
    mutables = model_space.simplify(lambda mutable: not (fine and isinstance(mutable, CategoricalMultiple)))
    for _ in range(100 * count):
        sample: dict[str, Any] = {}
        try:
            for mutable in mutables.values():
                mutable.random(sample, stream)
        except SampleValidationError:
            continue
        samples.append(sample)
        if len(samples) == count:
            return samples
    raise AssertionError("too few valid samples")


def test_paths_of_a_graph_are_those_of_nnis_cell(nasbench201: Any) -> None:
    """Where operations are none or the identity, a cell multiplies its input by the number of its paths."""
    for ops in list(itertools.product(("none", "skip_connect"), repeat=6))[::5]:
        sample = {f"cell/{edge}": op for edge, op in zip(EDGES, ops, strict=True)}
        cell = nasbench201.cells[0].freeze(sample)
        ways = np.linalg.inv(np.eye(len(graph := nasbench201_sample(sample))) - graph.adjacency)[0, -1]
        assert torch.equal(cell(torch.ones(1, 4, 2, 2)), torch.full((1, 4, 2, 2), float(round(ways))))


def test_pruned_cells_are_those_of_nni(nasbench101: Any) -> None:
    for fine in (False, True):
        for sample in draw(nasbench101, 30, fine):
            final = sample["cell/final"]
            nodes = len(final) // 2 + 2
            ops = ["input", *(final[f"op{node}"] for node in range(1, nodes - 1)), "output"]
            matrix = [[source in final.get(f"input{node}", ()) for node in range(nodes)] for source in range(nodes)]
            assert nasbench101_sample(sample) == nasbench101_graph(matrix, ops)


def test_profiles_are_predictions(
    nasbench201: Any,
    nasbench101: Any,
    space: SearchSpace,
    predictor201: NNFormerPredictor,
    predictor101: NNFormerPredictor,
    predictor_hat: NNFormerPredictor,
    file201: Path,
) -> None:
    for sample in draw(nasbench201, 3):
        expected = predictor201.predict([nasbench201_sample(sample)])[0]
        for predictor in (predictor201, file201, str(file201)):
            profiler = PredictorProfiler(nasbench201, predictor)
            assert isinstance(profiler, Profiler)
            assert type(profiler.profile(sample)) is float
            assert profiler.profile(sample) == pytest.approx(expected)
    for sample in draw(nasbench101, 3):
        expected = predictor101.predict([nasbench101_sample(sample)])[0]
        assert PredictorProfiler(nasbench101, predictor101).profile(sample) == pytest.approx(expected)
    model_space = as_model_space(space)
    for sample in draw(model_space, 3):
        expected = predictor_hat.predict([translation_graph(model_space.freeze(sample).architecture)])[0]
        assert PredictorProfiler(model_space, predictor_hat).profile(sample) == pytest.approx(expected)


def test_latency_is_read_with_all_operations(nasbench201: Any, predictor201: NNFormerPredictor, tmp_path: Path) -> None:
    sample = dict.fromkeys((f"cell/{edge}" for edge in EDGES), "conv_3x3") | {"cell/2_3": "none", "cell/1_3": "none"}
    full = predictor201.predict([nasbench201_unpruned_sample(sample)])[0]
    assert PredictorProfiler(nasbench201, predictor201).profile(sample) != pytest.approx(full)
    profiler = PredictorProfiler(nasbench201, predictor201, reader="nasbench201_unpruned")
    assert profiler.profile(sample) == pytest.approx(full)
    predictor201.save(tmp_path / "p.safetensors")
    latency = NNFormerPredictor.load(tmp_path / "p.safetensors")
    latency.info |= {"reader": "nasbench201_unpruned"}
    assert PredictorProfiler(nasbench201, latency).profile(sample) == pytest.approx(full)
    with pytest.raises(ConfigError, match=r"'translation'.*nasbench201 or nasbench201_unpruned"):
        PredictorProfiler(nasbench201, latency, reader="translation")


IMAGE = torch.zeros(1, 3, 16, 16)
EDGES = ("0_1", "0_2", "1_2", "0_3", "1_3", "2_3")


@pytest.fixture(scope="module")
def model() -> GraphLatencyModel:
    pytest.importorskip("onnx", reason="onnx is not installed")
    return CountsModel().fit(toy_networks())


class Convolutions(FunctionalEvaluator):  # type: ignore[misc]
    """How many there are, without building the model."""

    def _execute(self, model: Any) -> None:
        nni.report_final_result(float(sum(op == "conv_3x3" for op in model.sample.values())))


def test_a_profile_is_what_the_frozen_network_costs(nasbench201: Any, model: GraphLatencyModel, tmp_path: Path) -> None:
    model.save(tmp_path / "m.safetensors")
    profiler = NetworkLatencyProfiler(nasbench201, IMAGE, tmp_path / "m.safetensors")
    assert isinstance(profiler, Profiler)
    cheap, dear = ({f"cell/{edge}": op for edge in EDGES} for op in ("skip_connect", "conv_3x3"))
    assert profiler.profile(dear) > 1.2 * profiler.profile(cheap)
    assert profiler.profile(dear) == predict_module_latency(nasbench201.freeze(dear), IMAGE, model).latency_ms


def test_each_sample_is_exported_once(
    nasbench201: Any, model: GraphLatencyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiler = NetworkLatencyProfiler(nasbench201, IMAGE, model)
    samples = draw(nasbench201, 2)
    values = profiler.profile_many([*samples, samples[0]])
    assert values[0] == values[2]
    monkeypatch.setattr(profiler, "space", None)
    assert [profiler.profile(dict(reversed(sample.items()))) for sample in samples] == values[:2]


def test_a_search_within_a_limit(nasbench201: Any, model: GraphLatencyModel) -> None:
    profiler = NetworkLatencyProfiler(nasbench201, IMAGE, model)
    limit = float(np.median(profiler.profile_many(draw(nasbench201, 3))))
    strategy = SearchStrategy("random", evaluations=2, batch=2, constraints={"latency_ms": (profiler, limit)})
    space = SimplifiedModelSpace.from_model(nasbench201, Convolutions(lambda model: None))
    strategy(space, SequentialExecutionEngine(8))
    assert len(strategy.archive) == 2
    assert all(one.costs["latency_ms"] == profiler.profile(one.sample) <= limit for one in strategy.archive)
