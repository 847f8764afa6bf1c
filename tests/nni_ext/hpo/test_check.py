"""``nas-ext nni check`` looks at an experiment; code of the experiment is run on request alone."""

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
CODE = """
from pathlib import Path
Path(__file__).with_name("was_run").touch()
from nni_ext.hpo.tuner import SearchTuner

class Mine(SearchTuner):
    pass

class Other:
    pass

class Broken(SearchTuner):
    def __init__(self, **arguments):
        raise ZeroDivisionError("mine")
"""


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


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import sys

    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "somebodys_tuner.py").write_text(CODE, encoding="utf-8")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "somebodys_tuner", raising=False)
    return folder


def test_other_code_is_not_imported(tmp_path: Path, code: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = experiment(tmp_path, className="somebodys_tuner.Mine", codeDirectory=str(code))
    assert main(["nni", "check", path]) == 2
    err = capsys.readouterr().err
    assert f"is somebodys_tuner.Mine in {code}, and a check does not run code of an experiment" in err
    assert "--import-code imports it" in err and len(err.splitlines()) == 1
    assert not (code / "was_run").exists()


def test_on_request_it_is(tmp_path: Path, code: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = experiment(
        tmp_path, className="somebodys_tuner.Mine", codeDirectory=str(code), classArgs={"strategy": "random", "seed": 1}
    )
    assert main(["nni", "check", path, "--import-code"]) == 0
    assert (code / "was_run").exists() and {"size:", "kind:"} <= set(capsys.readouterr().out.split())
    for name, said in [
        ("Other", "is Other, which is none of ours: nothing was checked"),
        ("Broken", "somebodys_tuner.Broken cannot be made (ZeroDivisionError: mine)"),
        ("Absent", "somebodys_tuner.Absent cannot be made (AttributeError"),
    ]:
        path = experiment(tmp_path, className=f"somebodys_tuner.{name}", codeDirectory=str(code))
        assert main(["nni", "check", path, "--import-code"]) == 2
        assert said in capsys.readouterr().err


def test_our_classes_come_from_this_package(tmp_path: Path, code: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (code / "nni_ext").mkdir()
    (code / "nni_ext" / "__init__.py").write_text(CODE, encoding="utf-8")
    arguments = {"className": "nni_ext.hpo.tuner.SearchTuner", "codeDirectory": str(code)}
    assert main(["nni", "check", experiment(tmp_path, **arguments, classArgs={"strategy": "random", "seed": 1})]) == 0
    assert "size:" in capsys.readouterr().out
    assert main(["nni", "check", experiment(tmp_path, **arguments, classArgs={"strategy": "random", "sed": 1})]) == 2
    assert "unknown argument of strategy random 'sed'" in capsys.readouterr().err
    assert not list(code.rglob("was_run"))


EXAMPLES = Path(__file__).parents[3] / "examples" / "nni"
OURS = "python -m nni_ext.trial --checkpoint /tmp"


@pytest.mark.parametrize(
    ("arguments", "metric", "mode", "command", "expected"),
    [
        ({"optimize_mode": "minimize"}, "loss", "minimize", OURS, []),
        ({"optimize_mode": "minimize"}, "default", "minimize", OURS, []),
        ({}, "default", "minimize", "python mine.py", ["classArgs lacks optimize_mode: the tuner minimizes default"]),
        ({"optimize_mode": "maximize"}, "default", "maximize", OURS, ["optimize_mode is maximize, but loss"]),
        ({"optimize_mode": "maximize"}, "top1", "maximize", OURS, ["add '--metric top1' to trialCommand"]),
        ({"optimize_mode": "maximize"}, "top1", "maximize", f"{OURS} --metric top1", []),
        ({"optimize_mode": "minimize"}, "default", "minimize", f"{OURS} --metric=top1", ["give 'optimize_mode: max"]),
        ({"optimize_mode": "maximize"}, "mine", "maximize", "python mine.py", []),
        ({"optimize_mode": "maximize"}, "default", "maximize", f"{OURS} --calibration /tmp", []),
        ({"optimize_mode": "maximize"}, "calibrated_test_top1", "maximize", f"{OURS} --calibration /tmp", []),
        ({"optimize_mode": "maximize"}, "default", "maximize", f"{OURS} --calibration /absent", ["--calibration /abs"]),
        ({"optimize_mode": "minimize"}, "loss", "minimize", f"{OURS} 'open", ["(No closing quotation): every trial"]),
        ({"optimize_mode": "minimize"}, "loss", "minimize", f"{OURS}/absent", ["--checkpoint /tmp/absent of trial"]),
    ],
)
def test_warnings(arguments: dict[str, str], metric: str, mode: str, command: str, expected: list[str]) -> None:
    local = SimpleNamespace(platform="local")
    config = SimpleNamespace(trial_command=command, trial_code_directory="/", training_service=local)
    found = experiment_warnings(arguments, metric, mode, config)
    assert len(found) == len(expected), found
    assert all(part in warning for part, warning in zip(expected, found, strict=True))


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
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0].startswith("a sample") and lines[1].startswith("  encoder.embed_dim: ")
    assert lines[-1] == f"can be started: python -m nni_ext.nnictl create --config '{path}' --port 8080"
    assert not shown.err
    del content["tuner"]["classArgs"]["optimize_mode"]
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert main(["nni", "check", str(path)]) == 0
    shown = capsys.readouterr()
    assert "warning: classArgs lacks optimize_mode: the tuner minimizes loss" in shown.err
    assert shown.out.splitlines()[-1].startswith("can be started, but see the warnings: python -m nni_ext.nnictl")
