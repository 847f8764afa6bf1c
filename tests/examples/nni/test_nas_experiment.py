"""The example of ``NasExperiment`` runs as its docstring says."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

import nni_ext  # noqa: F401  mends torchvision before NNI is imported

pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")

from nni.nas.experiment import experiment

from examples.nni import nas_experiment
from nas_core.models import params_m
from nas_core.space import Architecture, get_space

pytestmark = [pytest.mark.nni, pytest.mark.filterwarnings("ignore::RuntimeWarning:nni")]


@pytest.mark.parametrize("name", nas_experiment.STRATEGIES)
def test_example(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(experiment, "Experiments", functools.partial(experiment.Experiments, home_dir=str(tmp_path)))
    nas_experiment.main(["--strategy", name, "--models", "40", "--max-params-m", "0.7", "--out", str(tmp_path / "out")])
    assert "40 models evaluated" in capsys.readouterr().out
    best = Architecture.load(tmp_path / "out" / "best.json")
    assert best in get_space("hat_small") and params_m(best) <= 0.7
