"""Predictors as files: saved, loaded, damaged, altered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nas_core.errors import ConfigError, DataError
from nas_core.graph import Graphs
from nas_core.predictor import ACCURACY_MODELS, NNFormerPredictor, load_accuracy_model
from nas_core.predictor.artifact import read_artifact, write_artifact
from tests.predictor.graphs import TINY


def test_saved_and_loaded(tmp_path: Path, graphs: Graphs, targets: np.ndarray) -> None:
    predictor = NNFormerPredictor("paper", members=2, targets="normal", **TINY).fit(graphs, targets)
    predictor.save(tmp_path / "p.safetensors")
    loaded = NNFormerPredictor.load(tmp_path / "p.safetensors")
    for got, expected in zip(loaded.predict_with_spread(graphs), predictor.predict_with_spread(graphs), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert loaded.predict_with_spread(graphs)[1].min() > 0
    assert loaded.recipe == predictor.recipe and loaded.info == predictor.info


def test_files_that_are_no_predictor(tmp_path: Path, fitted: NNFormerPredictor) -> None:
    path = tmp_path / "p.safetensors"
    with pytest.raises(DataError, match="not found"):
        NNFormerPredictor.load(path)
    fitted.save(path)
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], content[:20], b"", b"x" * 100):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"safetensors"):
            NNFormerPredictor.load(path)
    path.write_bytes(content.replace(b'\\"version\\": 2', b'\\"version\\": 9'))
    with pytest.raises(DataError, match="version 9"):
        NNFormerPredictor.load(path)
    path.write_bytes(content.replace(b"nn-former", b"nn-farmer"))
    with pytest.raises(DataError, match="nn-farmer"):
        NNFormerPredictor.load(path)
    with pytest.raises(ConfigError, match="safetensors"):
        fitted.save(tmp_path / "p.bin")
    unfitted = NNFormerPredictor("paper")
    with pytest.raises(ConfigError, match="not fitted"):
        unfitted.predict([])
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="not fitted"):
        unfitted.save(path)
    assert path.read_bytes() == content


def test_altered_files(tmp_path: Path, graphs: Graphs, targets: np.ndarray) -> None:
    path = tmp_path / "p.safetensors"
    small = {**TINY, "members": 3, "processes": 1, "trees": 1, "epochs": 1}
    NNFormerPredictor("best", **small).fit(graphs, targets).save(path)
    header, tensors = read_artifact(path, "nn-former")
    recipe, kind = header["recipe"], {"format", "version", "kind"}

    def nan(name: str) -> dict[str, torch.Tensor]:
        return {**tensors, name: tensors[name] * torch.nan}

    missed = [name for name in tensors if name.startswith(("2.", "statistics."))]
    wrong: list[tuple[dict[str, Any], dict[str, torch.Tensor]]] = [
        *(
            ({name: value}, tensors)
            for name in header
            if name not in kind | {"share", "seed"}
            for value in (None, "x", [], 7)
            if value is not None or name not in {"ends", "common_ends"}  # graphs have ends, none in common
        ),
        *(({"share": value}, tensors) for value in (None, "x", [], 7, -0.1, 0, float("nan"))),
        ({"scale": [[0.5, 0.5], [0.1, 0.2]]}, tensors),
        ({"scale": [[0.5, 0.6], [0.1, float("nan")]]}, tensors),
        ({"scale": [[0.5], [0.1]]}, tensors),
        ({"info": {"graphs": 0}}, tensors),
        ({"info": {}}, tensors),
        ({"known": [-3]}, tensors),
        ({"seed": -1}, tensors),
        ({"seed": True}, tensors),
        ({"recipe": {**recipe, "members": 2}}, tensors),
        ({"recipe": {**recipe, "members": 10**9}}, tensors),
        ({"recipe": {**recipe, "processes": 2}}, tensors),
        ({"recipe": {**recipe, "targets": "log"}}, tensors),
        ({"recipe": {**recipe, "model": {**recipe["model"], "depth": 10**9}}}, tensors),
        ({"recipe": {**recipe, "model": {**recipe["model"], "dim": 64}}}, tensors),
        ({"recipe": {**recipe, "model": {**recipe["model"], "width": 64}}}, tensors),
        *(({}, {k: v for k, v in tensors.items() if k != name}) for name in tensors if name in missed),
        *(({}, nan(name)) for name in ("0.head.weight", "2.norm.bias", "statistics.numbers")),
        ({}, {**tensors, "0.head.weight": tensors["0.head.weight"].double()}),
        ({}, {**tensors, "0.head.weight": tensors["0.head.weight"].T}),
        ({}, {**tensors, "statistics.trees.0": tensors["statistics.trees.0"][:50]}),
    ]
    for changes, parts in wrong:
        write_artifact(path, "nn-former", {**header, **changes}, parts)
        with pytest.raises(DataError, match="is damaged") as caught:
            NNFormerPredictor.load(path)
        assert "\n" not in str(caught.value), changes
    for version in (0, 1, -5, True, "1", None, 1.0):
        write_artifact(path, "nn-former", {**header, "version": version}, tensors)
        with pytest.raises(DataError, match="this release reads 2"):
            NNFormerPredictor.load(path)


def test_weights_that_are_no_numbers_are_not_saved(tmp_path: Path, graphs: Graphs, targets: np.ndarray) -> None:
    predictor = NNFormerPredictor("paper", **{**TINY, "epochs": 1}).fit(graphs, targets)
    with torch.no_grad():
        predictor.models[0].head.weight[0, 0] = float("inf")
    with pytest.raises(DataError, match=r"weight 0\.head\.weight"):
        predictor.save(tmp_path / "p.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "settings"), [("boosted-trees", {"trees": 3}), ("gaussian-process", {"processes": 3})]
)
def test_files_of_models_that_nobody_judged(
    name: str, settings: dict[str, int], tmp_path: Path, graphs: Graphs, targets: np.ndarray
) -> None:
    path = tmp_path / "p.safetensors"
    model = ACCURACY_MODELS.get(name)(**settings).fit(graphs, targets)
    model.save(path)
    header, tensors = read_artifact(path, name)
    own = {name for name in header if name not in ("mixture", "format", "version", "kind")}
    write_artifact(path, name, {key: header[key] for key in header if key in own}, tensors)
    opened = load_accuracy_model(path)
    predicted, spread = opened.predict_with_spread(graphs)
    np.testing.assert_allclose(predicted, model.predict(graphs))
    assert len(np.unique(spread)) > 5 and opened.predict_quantiles(graphs, [0.1, 0.9]).shape == (2, len(graphs))
    opened.save(path)
    np.testing.assert_array_equal(load_accuracy_model(path).predict_with_spread(graphs)[1], spread)
