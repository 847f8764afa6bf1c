"""Files of the models, and what else holds networks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors import safe_open

from nas_core.errors import DataError
from nas_core.latency import load_latency_model
from nas_core.latency.by_graph import NNFormerModel, NNFormerReleasedModel
from nas_core.latency.by_graph.load import load_networks, measured_on
from nas_core.latency.by_graph.shipped import FOLDER
from nas_core.predictor import NNFormerPredictor
from nas_core.predictor.artifact import write_artifact
from tests.latency.by_graph.toy import toy_networks


def test_an_nn_formers_file_is_a_predictors(tmp_path: Path) -> None:
    data = toy_networks(20)
    model = NNFormerReleasedModel(dim=16, depth=1, epochs=1).fit(data)
    model.save(tmp_path / "m.safetensors")
    assert NNFormerPredictor.load(tmp_path / "m.safetensors").predict(data.graphs).tolist() == pytest.approx(
        model.predict(data.graphs).tolist()
    )


def test_members_give_the_spread() -> None:
    data = toy_networks(20)
    model = NNFormerModel(dim=16, depth=1, epochs=1, members=2).fit(data)
    predicted, spread = model.predict_with_spread(data.graphs)
    inner = model._predictor  # private: the members' own spread, before it is widened
    _, deviation = inner.predict_with_spread(data.graphs)
    factor = predicted / inner.predict(data.graphs)
    assert spread**2 == pytest.approx((predicted * model.relative_spread) ** 2 + (factor * deviation) ** 2)
    assert (spread > predicted * model.relative_spread).all()


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    predictor = NNFormerPredictor("paper", dim=16, depth=1, epochs=1)
    predictor.fit(toy_networks(20).graphs, [0.5] * 20).save(path)
    with pytest.raises(DataError, match="predicts no latency of whole networks"):
        load_latency_model(path, "graph")
    write_artifact(path, "network-latency", {"model": "magic"}, {})
    with pytest.raises(DataError, match="holds a model 'magic'"):
        load_latency_model(path, "graph")
    write_artifact(path, "network-latency", {"model": "flops", "settings": {"wings": 2}}, {})
    with pytest.raises(DataError, match="is damaged"):
        load_latency_model(path, "graph")
    path.write_bytes(b"hello")
    with pytest.raises(DataError, match="no whole safetensors"):
        load_latency_model(path, "graph")


def test_networks_come_from_files_and_folders(tmp_path: Path) -> None:
    data = toy_networks(12)
    data.save(tmp_path / "n.npz")
    assert load_networks(tmp_path / "n.npz").names.tolist() == data.names.tolist()
    assert measured_on(tmp_path / "n.npz") is None
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(DataError):
            load_networks(folder)
    (tmp_path / "gt.txt").write_text("")
    with pytest.raises(DataError, match=r"gt\.txt is empty"):
        load_networks(tmp_path)


def test_shipped_models_have_a_checksum() -> None:
    paths = sorted(FOLDER.glob("*.safetensors"))
    assert paths
    for path in paths:
        with safe_open(path, framework="pt") as file:
            assert json.loads(file.metadata()["nas_ext"])["sha256"]
