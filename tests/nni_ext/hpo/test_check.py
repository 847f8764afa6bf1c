"""``nas-ext nni check`` looks at an experiment, and runs no code of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from nas_core.cli import main
from nas_core.space import get_space
from nni_ext.hpo.check import experiment_warnings
from nni_ext.hpo.search_space import format_space

SPACE = {"size": {"_type": "choice", "_value": [1, 2, 3]}, "kind": {"_type": "choice", "_value": ["a", "b"]}}


def experiment(folder: Path, **tuner: object) -> str:
    content = {
        "searchSpace": SPACE,
        "trialCommand": "python trial.py",
        "trialConcurrency": 1,
        "tuner": tuner,
        "trainingService": {"platform": "local"},
    }
    (folder / "experiment.yml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(folder / "experiment.yml")


def test_other_tuners_are_not_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = {
        "className": "nni_ext.hpo.tuner.SearchTuner",
        "codeDirectory": str(tmp_path),
        "classArgs": {"strategy": "random", "seed": 1},
    }
    assert main(["nni", "check", experiment(tmp_path, **ours)]) == 0
    assert {"size:", "kind:"} <= set(capsys.readouterr().out.split())
    for wrong in ({"className": "somebodys_tuner.Mine"}, {"classArgs": {"strategy": "random", "sed": 1}}):
        assert main(["nni", "check", experiment(tmp_path, **{**ours, **wrong})]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


EXAMPLES = Path(__file__).parents[3] / "examples" / "nni"
OURS = "python -m nni_ext.trial --checkpoint /tmp"


@pytest.mark.parametrize(
    ("arguments", "metric", "mode", "command", "expected"),
    [
        ({"optimize_mode": "minimize"}, "loss", "minimize", OURS, []),
        ({"optimize_mode": "minimize"}, "default", "minimize", OURS, []),
        ({}, "default", "minimize", "python mine.py", ["classArgs has no optimize_mode: the tuner minimizes default"]),
        ({"optimize_mode": "maximize"}, "default", "maximize", OURS, ["smaller values of loss"]),
        ({"optimize_mode": "maximize"}, "top1", "maximize", OURS, ["add '--metric top1' to trialCommand"]),
        ({"optimize_mode": "maximize"}, "top1", "maximize", f"{OURS} --metric top1", []),
        ({"optimize_mode": "minimize"}, "default", "minimize", f"{OURS} --metric=top1", ["give 'optimize_mode: max"]),
        ({"optimize_mode": "maximize"}, "mine", "maximize", "python mine.py", []),
        ({"optimize_mode": "minimize"}, "loss", "minimize", f"{OURS}/absent", ["--checkpoint /tmp/absent, but"]),
    ],
)
def test_warnings(arguments: dict[str, str], metric: str, mode: str, command: str, expected: list[str]) -> None:
    local = SimpleNamespace(platform="local")
    config = SimpleNamespace(trial_command=command, trial_code_directory="/", training_service=local)
    warnings = experiment_warnings(arguments, metric, mode, config)
    assert len(warnings) == len(expected), warnings
    assert all(part in warning for part, warning in zip(expected, warnings, strict=True))


def test_check_ends_with_the_command_that_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NNI_CONFIG_DIR", str(tmp_path))
    assert main(["nni", "register"]) == 0
    content = yaml.safe_load((EXAMPLES / "evolution.yml").read_text(encoding="utf-8"))
    (tmp_path / "space.json").write_text(format_space(get_space("hat_small")), encoding="utf-8")
    content.update(searchSpaceFile="space.json", trialCommand="python mine.py")
    path = tmp_path / "my experiment.yml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    capsys.readouterr()
    assert main(["nni", "check", str(path)]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0].startswith("parameters of the first trial") and lines[1].startswith("  encoder.embed_dim: ")
    assert lines[-1] == f"can be started: python -m nni_ext.nnictl create --config '{path}' --port 8080"
    assert not captured.err
    del content["tuner"]["classArgs"]["optimize_mode"]
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert main(["nni", "check", str(path)]) == 0
    captured = capsys.readouterr()
    assert "warning: classArgs has no optimize_mode: the tuner minimizes loss" in captured.err
    assert captured.out.splitlines()[-1].startswith("can be started, but see the warnings: python -m nni_ext.nnictl")
