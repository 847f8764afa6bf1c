"""Predictors fitted in moments, and experiments that leave nothing behind, shared by all tests of the plug-in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nni_ext  # noqa: F401  mends torchvision before the tests import NNI
from nas_core.graph import Graph
from nas_core.graph.nasbench101 import nasbench101_graph
from nas_core.graph.nasbench201 import nasbench201_graphs
from nas_core.models.translation.kind import translation_graph
from nas_core.predictor import NNFormerPredictor
from nas_core.space import SearchSpace, get_space


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.nni)
            item.add_marker(pytest.mark.filterwarnings("ignore::RuntimeWarning:nni"))  # of NNI, about current torch


def fitted(graphs: Sequence[Graph], **settings: Any) -> NNFormerPredictor:
    """Knows the number of edges, in percent."""
    targets = [70 + 2 * len(graph.edges) for graph in graphs]
    settings = {"dim": 16, "depth": 1, "epochs": 3, "targets": "mean", **settings}
    return NNFormerPredictor("paper", **settings).fit(graphs, targets)


@pytest.fixture(scope="session")
def space() -> SearchSpace:
    return get_space("hat_small")


@pytest.fixture(scope="session")
def predictor201() -> NNFormerPredictor:
    return fitted(list(nasbench201_graphs(np.random.default_rng(0).integers(0, 5, (40, 6)))))


@pytest.fixture(scope="session")
def predictor101() -> NNFormerPredictor:
    names = ("conv1x1-bn-relu", "conv3x3-bn-relu", "maxpool3x3")
    full = [np.ones((nodes, nodes), int) for nodes in range(2, 7)]
    cells = [np.triu(ones, 1) - np.triu(ones, 3) for ones in full]
    return fitted([nasbench101_graph(cell, ["input", *(names * 2)[: len(cell) - 2], "output"]) for cell in cells])


@pytest.fixture(scope="session")
def predictor_hat(space: SearchSpace) -> NNFormerPredictor:
    rng = np.random.default_rng(0)
    return fitted([translation_graph(space.sample(rng)) for _ in range(20)], attributes=5)


@pytest.fixture(scope="session")
def file201(predictor201: NNFormerPredictor, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("predictor") / "201.safetensors"
    predictor201.save(path)
    return path


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a tuner's run, with the variables that NNI's manager sets for its dispatcher."""
    monkeypatch.setenv("NNI_LOG_DIRECTORY", str(tmp_path / "abc" / "log"))
    return tmp_path / "abc" / "nas-ext"


@pytest.fixture(scope="session")
def nasbench201() -> Any:
    """The smallest NAS-Bench-201 of NNI's hub."""
    from nni.nas.hub.pytorch import NasBench201

    return NasBench201(stem_out_channels=4, num_modules_per_stack=1)
