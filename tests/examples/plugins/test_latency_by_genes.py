"""A latency model by genes of another distribution: through the contract, the command line, and as a limit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nas_core.cli import main
from nas_core.latency import LATENCY_MODELS, load_latency_model
from nas_core.latency.registry import list_latency_models
from nas_core.search import RandomSearch
from nas_core.search.limits import latency_limit
from nas_core.space import get_space
from tests.contracts.gene_latency_model import GeneLatencyModelContract
from tests.toys import plug_in

SHORT = [
    "--workload=vocab=40",
    "--workload=source_length=4",
    "--workload=target_length=3",
    "--workload=beam=2",
    "--repeats=2",
    "--warmup=1",
]


@pytest.fixture(scope="module", autouse=True)
def plugged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("site")
        target = "examples.plugins.latency_by_genes:LogLinearModel"
        plug_in(folder, patch, "nas_ext.latency_models", "log-linear", target)
        yield


class TestLogLinear(GeneLatencyModelContract):
    name = "log-linear"


def test_it_is_fitted_by_the_command_line_and_limits_a_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "log-linear" in list_latency_models("genes") and "log-linear" not in list_latency_models("graph")
    data, file = str(tmp_path / "lat.jsonl"), str(tmp_path / "m.json")
    assert main(["latency", "collect", "--space", "hat_small", "--out", data, "--samples", "16", *SHORT]) == 0
    fit = ["latency", "fit", "--data", data, "--out", file, "--model", "log-linear"]
    assert main([*fit, "--set", "strength=0.1"]) == 0
    assert "log-linear model of 16 measurements in hat_small" in capsys.readouterr().out
    assert main(["latency", "check", "--model", file, "--data", data]) == 0

    space = get_space("hat_small")
    model = load_latency_model(file, "genes", space)
    assert type(model) is LATENCY_MODELS.get("log-linear") and model.config.strength == 0.1
    bound = float(np.median(model.predict(space.architectures(space.sample_rows(np.random.default_rng(0), 50)))))
    result = RandomSearch(space, [latency_limit(model, bound)], seed=0).ask(10)
    assert len(result) == 10 and (model.predict(result) <= bound).all()
