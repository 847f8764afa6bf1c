"""A latency model by graph of another distribution: through the contract, the command line, and as a limit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nas_core.cli import main
from nas_core.latency import LATENCY_MODELS, load_latency_model
from nas_core.latency.registry import list_latency_models
from nas_core.search import Constraint, RandomSearch
from nas_core.space import Choice, SearchSpace
from tests.contracts.network_model import NetworkModelContract
from tests.latency.by_graph.toy import toy_graph, toy_networks
from tests.toys import plug_in


@pytest.fixture(scope="module", autouse=True)
def plugged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("site")
        plug_in(folder, patch, "nas_ext.latency_models", "power-law", "examples.plugins.latency_by_graph:PowerLawModel")
        yield


class TestPowerLaw(NetworkModelContract):
    name = "power-law"


def test_it_is_trained_by_the_command_line_and_limits_a_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "power-law" in list_latency_models("graph") and "power-law" not in list_latency_models("genes")
    data, file = tmp_path / "n.npz", tmp_path / "m.safetensors"
    toy_networks(30).save(data)
    train = ["latency", "train", "--data", str(data), "--out", str(file), "--model", "power-law"]
    assert main([*train, "--set", "strength=0.01"]) == 0
    assert "power-law model of latency" in capsys.readouterr().out

    model = load_latency_model(file, "graph")
    assert type(model) is LATENCY_MODELS.get("power-law") and model.config.strength == 0.01
    space = SearchSpace("chains", [Choice.make("nodes", list(range(6, 60)))])

    def predicted_ms(rows: np.ndarray) -> np.ndarray:
        nodes = [int(architecture["nodes"]) for architecture in space.architectures(rows)]
        return model.predict([toy_graph(np.random.default_rng(0), nodes=count) for count in nodes])

    bound = float(predicted_ms(space.rows([space.largest()]))[0] / 3)
    result = RandomSearch(space, [Constraint("latency_ms", bound, predicted_ms)], seed=0).ask(5)
    assert len(result) == 5 and (predicted_ms(space.rows(result)) <= bound).all()
