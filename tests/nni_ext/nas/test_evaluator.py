"""Experiments of NNI whose models a predictor evaluates, in the sequential engine, and what its other engine sends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")

import nni
from nni.nas.evaluator import Evaluator
from nni.nas.execution import SequentialExecutionEngine
from nni.nas.hub.pytorch import NasBench201
from nni.nas.nn.pytorch import ModelSpace
from nni.nas.space import RawFormatModelSpace, SimplifiedModelSpace
from nni.nas.strategy import RegularizedEvolution

from nas_core.graph import Graph
from nas_core.graph.nasbench201 import nasbench201_graph
from nas_core.predictor import NNFormerPredictor, StatisticsPredictor
from nni_ext import PredictorEvaluator, PredictorProfiler
from nni_ext.graphs import nasbench201_sample

SAMPLE = {"cell/0_1": "conv_3x3", "cell/0_2": "none", "cell/1_2": "skip_connect", "cell/0_3": "conv_1x1",
          "cell/1_3": "avg_pool_3x3", "cell/2_3": "conv_3x3"}  # fmt: skip


def small201() -> ModelSpace:
    return NasBench201(stem_out_channels=4, num_modules_per_stack=1)


def full_cell(sample: Any) -> Graph:
    """A reader of one's own; of module level, so that it travels by its name."""
    return nasbench201_graph([3] * 6)


@pytest.fixture(autouse=True)
def no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines leave the last trial behind, and NNI mocks none where one seems to run."""
    monkeypatch.setattr(nni.trial, "_params", None)


def test_evolution_over_nasbench201(file201: Path) -> None:
    strategy = RegularizedEvolution(population_size=4, sample_size=2, mutation_prob=0.5, seed=0)
    space = RawFormatModelSpace.from_model(small201(), PredictorEvaluator(file201))
    strategy(space, SequentialExecutionEngine(8))
    models = list(strategy.list_models(sort=False))
    expected = NNFormerPredictor.load(file201).predict([nasbench201_sample(model.sample) for model in models])
    assert [model.metric for model in models] == pytest.approx(expected.tolist(), rel=1e-6) and len(models) == 8


def test_what_a_trial_of_the_other_engine_receives(
    file201: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(file201.parent)
    sent = nni.dump(SimplifiedModelSpace.from_model(small201(), PredictorEvaluator(file201.name)).freeze(SAMPLE))
    monkeypatch.chdir(tmp_path)
    assert json.loads(sent)["evaluator"] == {
        "predictor": str(file201.resolve()),
        "read": None,
        "reader": None,
        "__instance_type__": "path:nni_ext.nas.predictors.PredictorEvaluator",
    }
    received = nni.load(sent)
    with Evaluator.mock_runtime(received):
        received.execute()
    assert received.metric == pytest.approx(PredictorEvaluator(file201).evaluate(received))


def test_the_standard_deviation_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cells = [nasbench201_graph([a, b, 3, 1, 2, 3]) for a in range(1, 5) for b in range(1, 5)]
    targets = [70.0 + 2 * len(graph.edges) + graph.ops.sum() for graph in cells]
    predictor = StatisticsPredictor(processes=0, trees=1, unseen="ignore").fit(cells, targets)
    predictor.save(tmp_path / "p.safetensors")
    model = RawFormatModelSpace.from_model(small201()).freeze(SAMPLE)
    reports: list[Any] = []
    monkeypatch.setattr(nni, "get_current_parameter", lambda: {})
    monkeypatch.setattr(nni, "report_intermediate_result", reports.append)
    monkeypatch.setattr(nni, "report_final_result", reports.append)
    mean, std = (float(each[0]) for each in predictor.predict_with_std([nasbench201_sample(SAMPLE)]))
    assert PredictorEvaluator(tmp_path / "p.safetensors").evaluate(model) == mean
    assert reports == [{"default": mean, "std": std}] * 2
    reloaded = nni.load(nni.dump(PredictorEvaluator(tmp_path / "p.safetensors")))
    assert reloaded.evaluate(model) == PredictorProfiler(small201(), predictor).profile(SAMPLE) == mean
