"""Latency models by name and from files, by genes and by graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError, NasExtError, UnknownChoiceError
from nas_core.latency import (
    LATENCY_MODELS,
    described_latency_models,
    latency_model,
    list_latency_models,
    load_latency_model,
    parsed_model_settings,
)
from nas_core.latency.by_genes import LinearModel
from nas_core.latency.by_graph import FlopsModel
from nas_core.space import get_space
from tests.latency.by_graph.toy import toy_networks


def test_models_by_name_and_by_what_they_read() -> None:
    assert list_latency_models("genes")[:3] == ["linear", "mlp", "hat-mlp"]
    assert {"flops", "counts", "ensemble"} <= set(list_latency_models("graph"))
    assert list_latency_models() == list_latency_models("genes") + list_latency_models("graph")
    assert all(model.name == name for name, model in LATENCY_MODELS.items())
    assert latency_model("linear", "genes") is LinearModel and latency_model("flops", "graph") is FlopsModel
    assert described_latency_models("genes").startswith("linear: Ridge regression")


def test_wrong_names_and_the_wrong_sort() -> None:
    with pytest.raises(UnknownChoiceError, match="linear, mlp"):
        latency_model("linera", "genes")
    with pytest.raises(UnknownChoiceError, match="Did you mean 'flops'"):
        latency_model("flop", "graph")
    with pytest.raises(ConfigError, match="'flops' is one by graph, of 'nas-ext latency train'; expected one by"):
        latency_model("flops", "genes")
    with pytest.raises(ConfigError, match="'mlp' is one by genes, of 'nas-ext latency fit'"):
        latency_model("mlp", "graph")


def test_registration_is_idempotent_and_loud() -> None:
    assert LATENCY_MODELS.register("flops", FlopsModel) is FlopsModel

    class Other(FlopsModel):
        """Another model of that name."""

    with pytest.raises(ConfigError, match=r"'flops' is .*FlopsModel already; .*Other needs another name"):
        LATENCY_MODELS.register("flops", Other)


def test_settings_have_their_types() -> None:
    assert parsed_model_settings("graphsage", ["epochs=3", "lr=1e-2"]) == {"epochs": 3, "lr": 0.01}
    assert parsed_model_settings("counts", ["shrinkage=1"]) == {"shrinkage": 1.0}
    assert parsed_model_settings("nn-former", ["depth=1"]) == {"depth": 1}
    assert parsed_model_settings("mlp", ["logarithmic=no"]) == {"logarithmic": False}
    for name, text in (("flops", "rounds=10"), ("linear", "rounds=1"), ("nn-former", "r=10"), ("counts", "shrinkage")):
        with pytest.raises((ConfigError, UnknownChoiceError)):
            parsed_model_settings(name, [text])


def test_one_function_reads_both(tmp_path: Path) -> None:
    space, data = get_space("hat_small"), toy_networks(20)
    rows = space.sample_rows(np.random.default_rng(0), 30)
    LinearModel(space).fit(rows, np.linspace(1, 2, 30)).save(tmp_path / "genes.json")
    FlopsModel().fit(data).save(tmp_path / "graph.safetensors")
    for name, cls in (("genes.json", LinearModel), ("graph.safetensors", FlopsModel)):
        assert type(load_latency_model(tmp_path / name)) is cls
    (tmp_path / "graph.safetensors").rename(tmp_path / "model")
    assert type(load_latency_model(tmp_path / "model")) is FlopsModel
    cases: list[tuple[type[NasExtError], str, str, str]] = [
        (DataError, "model", "genes", "reads graphs of networks .* 'nas-ext latency collect --predicted-by .*model'"),
        (DataError, "genes.json", "graph", "reads genes of one search space .* 'nas-ext latency train'"),
        (DataError, "absent.json", "genes", "file not found: .*; 'nas-ext latency fit' makes a latency model by genes"),
    ]
    for error, name, by, message in cases:
        with pytest.raises(error, match=message) as caught:
            load_latency_model(tmp_path / name, by)  # type: ignore[call-overload]
        assert "\n" not in str(caught.value)
