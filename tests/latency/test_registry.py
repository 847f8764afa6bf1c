"""Latency models by name and from files, by genes and by graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nas_core.latency import LATENCY_MODELS, load_latency_model
from nas_core.latency.by_genes.linear import LinearModel
from nas_core.latency.by_graph.counts import CountsModel
from nas_core.latency.registry import (
    describe_latency_models,
    latency_model,
    list_latency_models,
    parsed_model_settings,
)
from nas_core.space import get_space
from tests.contracts.gene_latency_model import GeneLatencyModelContract
from tests.latency.by_graph.toy import toy_networks


class TestLinear(GeneLatencyModelContract):
    name = "linear"


def test_models_by_name_and_by_inputs() -> None:
    assert list_latency_models("genes")[:1] == ["linear"]
    assert {"counts", "graphsage", "nn-former", "ensemble"} <= set(list_latency_models("graph"))
    assert list_latency_models() == list_latency_models("genes") + list_latency_models("graph")
    assert all(model.name == name for name, model in LATENCY_MODELS.items())
    assert latency_model("linear", "genes") is LinearModel and latency_model("counts", "graph") is CountsModel
    assert describe_latency_models("genes").startswith("linear: Ridge regression")
    assert parsed_model_settings("graphsage", ["epochs=3", "lr=1e-2"]) == {"epochs": 3, "lr": 0.01}
    assert parsed_model_settings("nn-former", ["depth=1"]) == {"depth": 1}


def test_one_function_reads_both(tmp_path: Path) -> None:
    space = get_space("hat_small")
    rows = space.sample_rows(np.random.default_rng(0), 30)
    LinearModel(space).fit(rows, np.linspace(1, 2, 30)).save(tmp_path / "genes.json")
    CountsModel().fit(toy_networks(20)).save(tmp_path / "graph.safetensors")
    for name, cls in (("genes.json", LinearModel), ("graph.safetensors", CountsModel)):
        assert type(load_latency_model(tmp_path / name)) is cls
