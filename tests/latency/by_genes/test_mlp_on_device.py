"""The perceptron of latency trained on a device; it predicts in numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from nas_core.latency import load_latency_model
from nas_core.latency.by_genes.mlp import MLPConfig, MLPModel
from nas_core.space import get_space

SMALL = MLPConfig(hidden=16, layers=2, steps=120, lr=5e-3)


def fitted(device: str) -> MLPModel:
    space = get_space("hat_small")
    rows = space.sample_rows(np.random.default_rng(0), 100)
    summary = space.encode_rows(rows, "summary").astype(float)
    return MLPModel(space, config=SMALL).on(device).fit(rows, 5 + 10 * summary[:, 5] * (1 + summary[:, 4]))


def rows_of(model: MLPModel) -> np.ndarray:
    return model.space.sample_rows(np.random.default_rng(1), 50)


def test_fits_as_on_the_cpu(device: str) -> None:
    on_cpu, on_device = fitted("cpu"), fitted(device)
    assert on_device.device.type == torch.device(device).type
    np.testing.assert_allclose(
        on_device.predict_rows(rows_of(on_device)), on_cpu.predict_rows(rows_of(on_cpu)), rtol=0.05
    )


def test_its_file_knows_no_device(device: str, tmp_path: Path) -> None:
    model, path = fitted(device), tmp_path / "model.json"
    model.save(path)
    reloaded = load_latency_model(path, "genes")
    assert reloaded.device == torch.device("cpu") and "cuda" not in path.read_text()
    np.testing.assert_allclose(reloaded.predict_rows(rows_of(model)), model.predict_rows(rows_of(model)), rtol=1e-6)
    np.testing.assert_array_equal(model.predict_rows(rows_of(model)), fitted(device).predict_rows(rows_of(model)))
