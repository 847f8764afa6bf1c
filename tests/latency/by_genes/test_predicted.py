"""Architectures of a space predicted as whole networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")

from nas_core.cli import main
from nas_core.latency import load_latency_model
from nas_core.latency.by_genes.dataset import LatencyDataset
from nas_core.latency.by_genes.predicted import PredictedMeasurements
from nas_core.latency.by_graph.counts import CountsModel
from nas_core.models import kind_of
from nas_core.models.translation.workload import TranslationWorkloadConfig
from nas_core.space import get_space
from tests.latency.by_graph.toy import toy_networks

pytestmark = pytest.mark.onnx
CONFIG = TranslationWorkloadConfig(source_vocab=40, target_vocab=40, source_length=6, target_length=8, beam=2)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    data = toy_networks()
    fitted = CountsModel().fit(data).calibrate(data)
    fitted.info |= {"runtime": "onnxruntime", "machine": {"device_name": "toy", "threads": 1}}
    fitted.save(path)
    return path


def test_a_translation_is_one_encoder_and_many_steps(model: Path) -> None:
    space = get_space("hat_small")
    outcomes = list(PredictedMeasurements(space, CONFIG, model)([space.smallest(), space.largest()]))
    small, large = (outcome.measurement for outcome in outcomes)
    assert set(small.components_ms) == {"encoder", "decoder"}
    assert small.raw_ms == pytest.approx(sum(small.components_ms.values())) and small.std_ms > 0
    assert all(large.components_ms[part] > small.components_ms[part] for part in small.components_ms)
    assert large.relative == pytest.approx(large.raw_ms / large.reference_ms)
    longer = TranslationWorkloadConfig(source_vocab=40, target_vocab=40, source_length=6, target_length=16, beam=2)
    word = TranslationWorkloadConfig(source_vocab=40, target_vocab=40, target_length=1, beam=2)
    long, short = (next(PredictedMeasurements(space, c, model)([space.smallest()])).measurement for c in (longer, word))
    assert long.components_ms["decoder"] > 2 * small.components_ms["decoder"] > 2 * short.components_ms["decoder"] > 0


@pytest.mark.parametrize("name", ["mformer_translation_small", "mformer_cifar10_small"])
def test_linear_attention_and_images_are_predicted_too(model: Path, name: str) -> None:
    space = get_space(name)
    predicted = PredictedMeasurements(space, kind_of(space).config({}), model)
    assert predicted.described["of"]["kind"] == ("image" if "cifar" in name else "translation")
    parts = {"network"} if "cifar" in name else {"encoder", "decoder"}
    (outcome,) = predicted([space.smallest()])
    assert outcome.measurement.raw_ms > 0 and set(outcome.measurement.components_ms) == parts


def test_from_predictions_to_a_fast_model(model: Path, tmp_path: Path, capsys: Any) -> None:
    rows, fast = tmp_path / "p.jsonl", tmp_path / "fast.json"
    workload = [f"--workload={setting}" for setting in ("vocab=40", "source_length=6", "target_length=8", "beam=2")]
    collect = [
        "latency",
        "collect",
        "--space",
        "hat_small",
        "--out",
        str(rows),
        *workload,
        "--predicted-by",
        str(model),
    ]
    assert main([*collect, "--samples", "3"]) == 0
    assert "on toy, 1 thread(s), predicted and not measured" in capsys.readouterr().out
    assert main([*collect, "--samples", "14"]) == 0, "it goes on"
    dataset = LatencyDataset.read(rows)
    workload = dataset.settings["workload"]
    assert workload["kind"] == "predicted" and workload["runtime"] == "onnxruntime" and workload["of"]["beam"] == 2
    assert main(["latency", "fit", "--data", str(rows), "--out", str(fast)]) == 0
    fitted = load_latency_model(fast, "genes", dataset.space)
    errors = fitted.predict(dataset.architectures()) / [record["latency_ms"] for record in dataset.records] - 1
    assert np.abs(errors).mean() < 0.1
