"""Each accuracy model through the contract, and what the registry says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError, UnknownChoiceError
from nas_core.graph import Graph, Graphs
from nas_core.predictor import (
    ACCURACY_MODELS,
    NNFormerPredictor,
    load_accuracy_model,
    parsed_accuracy_settings,
)
from nas_core.predictor.artifact import write_artifact
from tests.contracts.accuracy_model import AccuracyModelContract


class TestNNFormer(AccuracyModelContract):
    name = "nn-former"
    reads_static = True
    settings = {"dim": 32, "depth": 2, "epochs": 20, "lr": 2e-3}  # noqa: RUF012 - never changed
    order_matters = True
    has_spread = False


class TestNNFormerMixture(AccuracyModelContract):
    name = "nn-former"
    reads_static = True
    settings = {  # noqa: RUF012 - never changed
        "recipe": "best", "members": 2, "processes": 1, "trees": 1, "dim": 16, "depth": 1, "epochs": 4,
    }  # fmt: skip
    order_matters = True


class TestStatistics(AccuracyModelContract):
    name = "statistics"
    reads_static = True
    settings = {"processes": 2, "trees": 2}  # noqa: RUF012 - never changed
    order_matters = True

    def test_it_is_the_recipe_of_that_name(self, model: NNFormerPredictor, data: tuple[Graphs, np.ndarray]) -> None:
        recipe = NNFormerPredictor("statistics", seed=1, processes=2, trees=2).fit(*data)
        for mine, other in zip(model.predict_with_spread(data[0]), recipe.predict_with_spread(data[0]), strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-12)


class TestGaussianProcess(AccuracyModelContract):
    name = "gaussian-process"
    reads_static = True
    settings = {"processes": 1}  # noqa: RUF012 - never changed


class TestBoostedTrees(AccuracyModelContract):
    name = "boosted-trees"
    reads_static = True
    settings = {"trees": 2}  # noqa: RUF012 - never changed
    order_matters = True


def test_each_member_has_its_contract() -> None:
    tested = {case.name for case in AccuracyModelContract.__subclasses__() if case.__module__ == __name__}
    assert tested == {name for name, model in ACCURACY_MODELS.items() if model.__module__.startswith("nas_core.")}
    assert all(model.name == name for name, model in ACCURACY_MODELS.items())


def test_settings_have_their_types() -> None:
    assert parsed_accuracy_settings("nn-former", ["recipe=best", "epochs=3"]) == {"recipe": "best", "epochs": 3}
    assert parsed_accuracy_settings("boosted-trees", ["trees=3"]) == {"trees": 3}
    with pytest.raises(UnknownChoiceError, match="setting of accuracy model 'boosted-trees' 'epochs'"):
        parsed_accuracy_settings("boosted-trees", ["epochs=3"])
    with pytest.raises(UnknownChoiceError, match="Did you mean 'boosted-trees'"):
        parsed_accuracy_settings("bosted-trees", [])
    with pytest.raises(ConfigError, match="processes 0 and trees 0"):
        ACCURACY_MODELS.get("statistics")(processes=0, trees=0)
    with pytest.raises(UnknownChoiceError, match="scale of targets"):
        ACCURACY_MODELS.get("gaussian-process")(targets="log")


def test_files_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    write_artifact(path, "magic", {}, {})
    with pytest.raises(DataError, match=r"holds a 'magic' .* expected a 'nn-former' or 'statistics'"):
        load_accuracy_model(path)
    write_artifact(path, "boosted-trees", {"seed": 0, "unseen": "error", "settings": {"wings": 2}}, {})
    with pytest.raises(DataError, match="the predictor is damaged"):
        load_accuracy_model(path)


def test_graphs_without_ends_get_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Chains of operations without an input: what comes first and last is told by the ends alone."""
    stream = np.random.default_rng(0)
    forks = [Graph(stream.integers(0, 3, 5), [(0, 2), (1, 2), (2, 3), (2, 4)]) for _ in range(60)]
    wanted = np.array([float(graph.ops[0] == 1) + float(graph.ops[1] == 1) for graph in forks])
    with caplog.at_level("INFO"):
        model = ACCURACY_MODELS.get("statistics")(processes=1, trees=1).fit(forks, wanted)
    assert "each gets an input before and an output behind it" in caplog.text
    model.save(tmp_path / "m.safetensors")
    loaded = load_accuracy_model(tmp_path / "m.safetensors")
    np.testing.assert_allclose(loaded.predict(forks), model.predict(forks), rtol=1e-12)
    np.testing.assert_allclose(loaded.predict(forks), wanted, atol=0.1)
