"""Latency models of whole networks fitted on a device: GraphSAGE, NN-Former and both together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.ensemble import EnsembleModel
from nas_core.latency.by_graph.graphsage import GraphSageModel
from nas_core.latency.by_graph.nn_former import NNFormerModel
from nas_core.latency.registry import load_latency_model
from tests.latency.by_graph.toy import toy_networks
from tests.predictor.accelerated import NoAtomicSums, as_accelerator  # noqa: F401 - a fixture

DATA = toy_networks(24)
KINDS: dict[str, tuple[type[GraphLatencyModel], dict[str, Any]]] = {
    "graphsage": (GraphSageModel, {"dim": 16, "layers": 2, "epochs": 4, "dropout": 0.0}),
    "nn-former": (NNFormerModel, {"dim": 16, "depth": 1, "epochs": 2}),
    "ensemble": (EnsembleModel, {"epochs": 2}),
}


def fitted(kind: str, device: str, **changes: Any) -> GraphLatencyModel:
    model, settings = KINDS[kind]
    return model(**{**settings, **changes}).on(device).fit(DATA)


def weights(model: GraphLatencyModel) -> list[torch.Tensor]:
    return [x.cpu() for x in model.tensors().values()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("as_accelerator")
def test_equal_seeds_equal_weights(device: str, kind: str) -> None:
    with NoAtomicSums():
        first = fitted(kind, device)
    assert all(x.device.type == torch.device(device).type for x in first.tensors().values())
    repeated = fitted(kind, device)
    assert all(torch.equal(a, b) for a, b in zip(weights(first), weights(repeated), strict=True))
    np.testing.assert_array_equal(repeated.predict(DATA.graphs), first.predict(DATA.graphs))


@pytest.mark.parametrize("kind", KINDS)
def test_from_device_to_device(device: str, kind: str, tmp_path: Path) -> None:
    on_device, path = fitted(kind, device), tmp_path / "model.safetensors"
    on_device.save(path)
    here = load_latency_model(path, "graph")
    assert here.device == torch.device("cpu")
    np.testing.assert_allclose(here.predict(DATA.graphs), on_device.predict(DATA.graphs), rtol=1e-3)
    back = here.on(device)
    assert back.device.type == torch.device(device).type
    np.testing.assert_allclose(back.predict(DATA.graphs), on_device.predict(DATA.graphs), rtol=1e-5)
