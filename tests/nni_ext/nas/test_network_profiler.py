"""Latency models of whole networks on samples of NNI's model spaces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")
pytest.importorskip("onnx", reason="onnx is not installed")

import nni
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.execution import SequentialExecutionEngine
from nni.nas.hub.pytorch import AutoFormer, NasBench201
from nni.nas.profiler import Profiler
from nni.nas.space import SimplifiedModelSpace

from nas_core.errors import ConfigError
from nas_core.graph import GraphError
from nas_core.latency.by_graph import CountsModel, GraphLatencyModel
from nas_core.latency.by_graph.predict import predict_module_latency
from nni_ext import NetworkLatencyProfiler, SearchStrategy
from tests.latency.by_graph.toy import toy_networks

IMAGE = torch.zeros(1, 3, 16, 16)
EDGES = ("0_1", "0_2", "1_2", "0_3", "1_3", "2_3")


@pytest.fixture(scope="module")
def nasbench201() -> Any:
    return NasBench201(stem_out_channels=4, num_modules_per_stack=1)


@pytest.fixture(scope="module")
def model() -> GraphLatencyModel:
    return CountsModel().fit(toy_networks())


def draw(space: Any, count: int) -> list[dict[str, Any]]:
    stream, samples = np.random.RandomState(0), []
    for _ in range(count):
        sample: dict[str, Any] = {}
        for mutable in space.simplify().values():
            mutable.random(sample, stream)
        samples.append(sample)
    return samples


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


def test_transformers_are_exported_too(model: GraphLatencyModel) -> None:
    space = AutoFormer(search_depth=(1, 2), img_size=32, search_embed_dim=(64,), search_num_heads=(2,))
    profiler = NetworkLatencyProfiler(space, torch.zeros(1, 3, 32, 32), model)
    assert all(value > 0 for value in profiler.profile_many(draw(space, 2)))


def test_each_sample_is_exported_once(
    nasbench201: Any, model: GraphLatencyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiler = NetworkLatencyProfiler(nasbench201, IMAGE, model)
    samples = draw(nasbench201, 3)
    values = profiler.profile_many([*samples, samples[0]])
    assert values[0] == values[3]
    monkeypatch.setattr(profiler, "space", None)
    assert [profiler.profile(dict(reversed(sample.items()))) for sample in samples] == values[:3]


def test_a_search_within_a_limit(nasbench201: Any, model: GraphLatencyModel) -> None:
    profiler = NetworkLatencyProfiler(nasbench201, IMAGE, model)
    limit = float(np.median(profiler.profile_many(draw(nasbench201, 8))))
    strategy = SearchStrategy(
        "evolution",
        iterations=2,
        population=6,
        parents=2,
        mutations=2,
        crossovers=2,
        constraints={"latency_ms": (profiler, limit)},
    )
    space = SimplifiedModelSpace.from_model(nasbench201, Convolutions(lambda model: None))
    strategy(space, SequentialExecutionEngine(8))
    assert len(strategy.archive) >= 6
    assert all(one.costs["latency_ms"] == profiler.profile(one.sample) <= limit for one in strategy.archive)


def test_a_prediction_far_beyond_the_training_is_no_limit(nasbench201: Any, model: GraphLatencyModel) -> None:
    batch = torch.zeros(128, 3, 16, 16)
    profiler = NetworkLatencyProfiler(nasbench201, batch, model)
    with pytest.raises(GraphError, match=r"batch 128 where training networks have 1.*too far to hold a limit"):
        profiler.profile(draw(nasbench201, 1)[0])
    strategy = SearchStrategy("random", evaluations=2, constraints={"latency_ms": (profiler, 0.0015)})
    space = SimplifiedModelSpace.from_model(nasbench201, Convolutions(lambda model: None))
    with pytest.raises(ConfigError, match="the profiler of 'latency_ms' judges no sample of this model space"):
        strategy(space, SequentialExecutionEngine(2))
