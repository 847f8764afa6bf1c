"""NN-Former as an accuracy model: files, failed and interrupted fits."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError
from nas_core.graph import Graph, Graphs
from nas_core.predictor import NNFormerPredictor
from nas_core.predictor import progress as progress_module
from tests.predictor.graphs import TINY, random_graphs, sizes_of_operations


class Stop(Exception):
    pass


def test_an_interrupted_fit_goes_on_identically(
    tmp_path: Path, graphs: Graphs, targets: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "EVERY_S", 0.0)
    full = NNFormerPredictor("paper", members=2, **TINY).fit(graphs, targets).predict(graphs)

    def interrupt(at: int) -> Any:
        def progress(step: int, steps: int, loss: float) -> None:
            assert 0 < step <= steps and np.isfinite(loss)
            if step == at:
                raise Stop

        return progress

    file = tmp_path / "fit"
    for at in (7, 30):  # in the first member, then in the second
        with pytest.raises(Stop):
            NNFormerPredictor("paper", members=2, **TINY).fit(graphs, targets, progress=interrupt(at), checkpoint=file)
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(ConfigError, match="epochs"):
        NNFormerPredictor("paper", members=2, **{**TINY, "epochs": 9}).fit(graphs, targets, checkpoint=file)
    with pytest.raises(ConfigError, match="data"):
        NNFormerPredictor("paper", members=2, **TINY).fit(graphs, targets + 1, checkpoint=file)
    resumed = NNFormerPredictor("paper", members=2, **TINY).fit(graphs, targets, checkpoint=file)
    np.testing.assert_array_equal(resumed.predict(graphs), full)
    assert not list(tmp_path.iterdir())


def test_the_model_reads_what_the_graphs_have(tmp_path: Path) -> None:
    featured = random_graphs((5, 40, 7) * 8, seed=4, features=True)
    recipe = {**TINY, "epochs": 2, "precision": "fp32"}
    predictor = NNFormerPredictor("paper", **recipe).fit(featured, np.linspace(0, 1, 24))
    model = predictor.recipe.model
    assert (model.attributes, model.shapes, model.static, model.max_nodes) == (8, 4, 4, 43)
    assert featured.attributes is not None
    moved = replace(featured, attributes=featured.attributes + 1)
    assert not np.allclose(predictor.predict(moved), predictor.predict(featured), atol=1e-6)
    predictor.save(tmp_path / "p.safetensors")
    loaded = NNFormerPredictor.load(tmp_path / "p.safetensors")
    np.testing.assert_array_equal(loaded.predict(featured), predictor.predict(featured))
    bare = random_graphs((5, 6, 7) * 8)
    values = sizes_of_operations(bare)
    fresh = NNFormerPredictor("paper", **recipe).fit(bare, values).predict(bare)
    np.testing.assert_array_equal(predictor.fit(bare, values).predict(bare), fresh)
    assert predictor.recipe.model.max_nodes == 32


def test_a_copy_makes_scorers_of_its_own(fitted: NNFormerPredictor, graphs: Graphs) -> None:
    """Recorded passes of a GPU cannot be copied; NASLib copies predictors."""
    expected = fitted.predict(graphs)
    twin = copy.deepcopy(fitted)
    assert isinstance(twin, NNFormerPredictor) and all(
        a is not b for a, b in zip(twin.models, fitted.models, strict=True)
    )
    np.testing.assert_array_equal(twin.predict(graphs), expected)
    np.testing.assert_array_equal(fitted.predict(graphs), expected)


def test_a_file_keeps_its_checks(tmp_path: Path, fitted: NNFormerPredictor) -> None:
    path = tmp_path / "p.safetensors"
    fitted.save(path)
    content = path.read_bytes()
    stream, damaged = random.Random(0), [content[: len(content) // 2], b"", b"x" * 100]
    damaged += [content.replace(b'\\"version\\": 2', b'\\"version\\": 9'), content.replace(b"nn-former", b"nn-farmer")]
    for _ in range(20):
        flipped = bytearray(content)
        flipped[stream.randrange(len(content))] ^= 1 << stream.randrange(8)
        damaged.append(bytes(flipped))
    for part in damaged:
        path.write_bytes(part)
        with pytest.raises(DataError) as caught:
            NNFormerPredictor.load(path)
        assert "\n" not in str(caught.value) and str(path) in str(caught.value)


def test_operations_beyond_the_indices_are_unseen_ones(fitted: NNFormerPredictor) -> None:
    ignoring = copy.deepcopy(fitted)
    ignoring.unseen = "ignore"
    first, second = (ignoring.predict([Graph([0, index, 4], [(0, 1), (1, 2)])])[0] for index in (5, 9000))
    assert first == second
