"""The recipe of a search strategy: plugged in from outside, it is searched with everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from examples.plugins.strategy import HillClimbing
from nas_core.cli import main
from nas_core.report.run import read_run
from nas_core.space import get_space
from tests.contracts.strategy import SPACE, StrategyContract, quality
from tests.search.toy_host import make_visible
from tests.toys import plug_in

NAME = HillClimbing.name
SMALL = {"steps": 3, "neighbours": 5}


class TestHillClimbing(StrategyContract):
    strategy = HillClimbing


@pytest.fixture(autouse=True)
def plugged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(tmp_path / "site", monkeypatch, "nas_ext.strategies", NAME, "examples.plugins.strategy:HillClimbing")


def test_the_command_takes_it_with_its_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_visible(tmp_path, monkeypatch)
    (tmp_path / "net.toy").write_text("{}", encoding="utf-8")
    command = ["search", "--checkpoint", str(tmp_path / "net.toy"), "--out", str(tmp_path / "run"), "--no-measure"]
    few = ["--strategy", NAME, "--set", "steps=3", "--set", "neighbours=5", "--limit", "params_m=20"]
    assert main([*command, *few]) == 0
    assert "at most 20 architectures to evaluate: (steps 3 + 1) x neighbours 5\n" in capsys.readouterr().err
    run = read_run(tmp_path / "run")
    assert run.strategies() == [f"{NAME} (seed 0)"] and len(run.evaluations) == 20
    (settings,) = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["settings"]["searches"].values()
    assert (settings["steps"], settings["neighbours"], settings["mutation_prob"]) == (3, 5, 0.1)
    assert main(["search", "--help"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert f"Strategy {NAME}, {HillClimbing.purpose}" in output
    assert "steps: Number of steps (default: 20)" in output


@pytest.mark.nni
def test_nni_tunes_by_it() -> None:
    pytest.importorskip("nni", reason="needs NNI: pip install 'nas-ext[nni]'")
    import nni

    from nas_core.space.labels import architecture_of
    from nni_ext import SearchTuner
    from nni_ext.hpo.search_space import nni_search_space

    tuner = SearchTuner(strategy=NAME, space="hat_small", **SMALL)
    tuner.update_search_space(json.loads(json.dumps(nni_search_space(SPACE))))
    values = []
    for number in range(100):
        try:
            parameters = tuner.generate_parameters(number)
        except nni.NoMoreTrialError:
            break
        values.append(quality(architecture_of(SPACE, parameters)))
        tuner.receive_trial_result(number, parameters, values[-1])
        tuner.trial_end(number, True)
    assert len(values) == 20 and min(values[5:]) < min(values[:5])


@pytest.mark.nni
@pytest.mark.filterwarnings("ignore::RuntimeWarning:nni")
def test_nnis_nas_experiments_search_by_it() -> None:
    import nni_ext  # before NNI: it mends torchvision

    pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")
    import nni
    from nni.nas.evaluator import FunctionalEvaluator
    from nni.nas.execution import SequentialExecutionEngine
    from nni.nas.space import SimplifiedModelSpace

    def evaluate(model: Any) -> None:
        nni.report_final_result(-quality(model.architecture))

    space = nni_ext.as_model_space(get_space("hat_small"))
    strategy = nni_ext.SearchStrategy(NAME, **SMALL)
    strategy(SimplifiedModelSpace.from_model(space, FunctionalEvaluator(evaluate)), SequentialExecutionEngine(100))
    assert len(strategy.archive) == 20
    assert strategy.best().metric > max(one.metric for one in strategy.archive[:5])
