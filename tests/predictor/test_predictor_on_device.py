"""Predictors on a device: fit and scoring in every precision, dense and packed; equal seeds; files between devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nas_core.device import device_name
from nas_core.errors import ConfigError
from nas_core.graph import Graphs
from nas_core.predictor import NNFormer, NNFormerPredictor, load_accuracy_model
from nas_core.predictor.nn_former.scorer import Scorer
from nas_core.predictor.training import Trainer
from tests.devices import TOLERANCES
from tests.predictor.accelerated import NoAtomicSums, as_accelerator  # noqa: F401 - a fixture
from tests.predictor.graphs import random_graphs, sizes_of_operations

CELLS = random_graphs((5, 6, 7) * 6, seed=1)
NETWORKS = random_graphs((70, 90, 66, 80, 75, 64, 120, 68), seed=2, features=True, density=0.04)
SETTINGS: dict[str, tuple[Graphs, dict[str, Any]]] = {
    "dense": (CELLS, {"recipe": "paper", "dim": 32, "depth": 2, "epochs": 4, "batch_size": 5, "lr": 1e-3}),
    "packed": (NETWORKS, {"recipe": "latency", "dim": 32, "depth": 2, "epochs": 3, "batch_size": 3, "lr": 1e-3}),
    "dense, large": (
        NETWORKS,
        {"recipe": "paper", "targets": "normal", "dim": 32, "depth": 1, "epochs": 2, "batch_size": 3},
    ),
    "packed, logarithm": (
        NETWORKS,
        {"recipe": "network-latency", "dim": 32, "depth": 1, "epochs": 2, "batch_size": 3},
    ),
}


def fitted(kind: str, device: str, **changes: Any) -> NNFormerPredictor:
    graphs, settings = SETTINGS[kind]
    predictor = NNFormerPredictor(**{"precision": "fp32", **settings, **changes}, device=device)
    return predictor.fit(graphs, targets_of(graphs))


def targets_of(graphs: Graphs) -> np.ndarray:
    return sizes_of_operations(graphs) + 0.3


def weights(predictor: NNFormerPredictor) -> list[torch.Tensor]:
    return [x.cpu() for x in predictor.tensors().values()]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", ["dense", "packed"])
def test_every_precision(device: str, kind: str, precision: str) -> None:
    predictor, graphs = fitted(kind, device, precision=precision), SETTINGS[kind][0]
    assert predictor.info["precision"] == precision and predictor.info["device"] == device_name(device)
    assert next(predictor.models[0].parameters()).device.type == torch.device(device).type
    exact = Scorer(on_cpu(predictor), "fp32")(graphs)
    allowed = (1 if precision == "bf16" else 4) * TOLERANCES[precision] * float(np.abs(exact).max())
    np.testing.assert_allclose(Scorer(predictor.models[0], precision)(graphs), exact, atol=allowed, rtol=0)


def on_cpu(predictor: NNFormerPredictor) -> Any:
    return NNFormerPredictor.restored(*predictor.contents(), "cpu").models[0]


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.usefixtures("as_accelerator")
def test_equal_seeds_equal_weights(device: str, kind: str) -> None:
    with NoAtomicSums():
        first = weights(fitted(kind, device))
    repeated, other = weights(fitted(kind, device)), weights(fitted(kind, device, seed=1))
    assert all(torch.equal(a, b) for a, b in zip(first, repeated, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("kind", SETTINGS)
def test_an_accelerators_way_is_the_cpus(device: str, kind: str, request: pytest.FixtureRequest) -> None:
    """Loss and gradients of one step; without dropout, since each kind of device draws its own."""
    expected_loss, expected = first_step(kind, "cpu")
    request.getfixturevalue("as_accelerator")
    loss, ours = first_step(kind, device)
    assert loss == pytest.approx(expected_loss, rel=1e-4)
    largest = max(float(x.abs().max()) for x in expected)
    assert largest > 1e-3
    for a, b in zip(ours, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4 * largest)


def first_step(kind: str, device: str) -> tuple[float, list[torch.Tensor]]:
    graphs, settings = SETTINGS[kind]
    recipe = NNFormerPredictor(**{**settings, "dropout": 0.0, "rank_weight": 0.0, "precision": "fp32", "epochs": 1})
    recipe.prepare(graphs)
    torch.manual_seed(0)
    model = NNFormer(recipe.recipe.model).to(device)
    loss = next(Trainer(model, graphs, targets_of(graphs), recipe.recipe.train).steps())
    return float(loss), [p.grad.cpu() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("kind", ["dense", "packed"])
def test_files_go_from_device_to_device(device: str, kind: str, tmp_path: Path) -> None:
    graphs, path = SETTINGS[kind][0], tmp_path / "model.safetensors"
    on_device = fitted(kind, device)
    on_device.save(path)
    here = load_accuracy_model(path, "cpu")
    np.testing.assert_allclose(here.predict(graphs), on_device.predict(graphs), rtol=1e-3)
    here.save(path)
    back = load_accuracy_model(path, device)
    np.testing.assert_array_equal(back.predict(graphs), on_device.predict(graphs))


def test_a_file_of_a_precision_that_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(*_: Any) -> str:
        raise ConfigError("bf16 needs another device")

    predictor, path = fitted("dense", "cpu", epochs=1), tmp_path / "model.safetensors"
    header, tensors = predictor.contents()
    header["recipe"]["train"]["precision"] = "bf16"
    monkeypatch.setattr("nas_core.predictor.device.check_precision", reject)
    there = NNFormerPredictor.restored(header, tensors, "cpu")
    np.testing.assert_array_equal(there.predict(CELLS), predictor.predict(CELLS))
    there.save(path)
    assert load_accuracy_model(path).recipe.train.precision == "bf16"


@pytest.mark.usefixtures("as_accelerator")
def test_losses_are_reported_in_order(device: str) -> None:
    reports: list[tuple[int, int, float]] = []
    graphs, settings = SETTINGS["dense"]
    predictor = NNFormerPredictor(**{**settings, "members": 2, "epochs": 15}, device=device)
    predictor.fit(graphs, targets_of(graphs), progress=lambda *facts: reports.append(facts))
    count = len(reports)
    assert [step for step, _, _ in reports] == [*range(1, count + 1)] and {steps for _, steps, _ in reports} == {count}
    assert all(np.isfinite(loss) for _, _, loss in reports)
