"""``nas-ext nni check`` looks at an experiment; code of the experiment is run on request alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from nas_core.cli import main

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
