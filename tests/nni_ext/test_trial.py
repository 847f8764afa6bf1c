"""The trial's program where there is nothing to evaluate; with a supernet it runs in the example experiments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

nni = pytest.importorskip("nni", reason="NNI is not installed")

from nas_core.space import get_space  # noqa: E402
from nas_core.space.labels import parameters_of  # noqa: E402
from nni_ext.trial import main  # noqa: E402
from tests.toys import ToySupernet  # noqa: E402

SPACE = get_space("hat_small")


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The parameters of a trial; none outside an experiment."""
    parameters: dict[str, Any] = {}
    monkeypatch.setattr(nni, "get_next_parameter", lambda: parameters)
    return parameters


def test_a_precision_goes_to_the_host(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A precision is passed to the host only if it is not the default; other hosts have none."""
    evaluated: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "nni_ext.trial.open_supernet", lambda path, **options: evaluated.append(options) or ToySupernet()
    )
    SPACE.smallest().save(tmp_path / "a.json")
    options = ["--checkpoint", "net.pt", "--architecture", str(tmp_path / "a.json"), "--device", "cuda:1"]
    assert main(options) == 0
    assert main([*options, "--precision", "bf16"]) == 0
    plain, half = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert "precision" not in evaluated[0] and "precision" not in plain
    assert evaluated[1]["precision"] == half["precision"] == "bf16" and evaluated[1]["device"] == "cuda:1"
    with pytest.raises(SystemExit):
        main([*options, "--precision", "fp8"])


def test_the_test_data_choose_nothing(
    given: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in ``nas-ext search``; a single architecture may be tested."""
    (tmp_path / "a.json").write_text("{}", encoding="utf-8")
    options = ["--checkpoint", "none.pt", "--valid-subset", "test"]
    given.update(parameters_of(SPACE, SPACE.smallest()))
    assert main(options) == 2
    error = capsys.readouterr().err
    assert "--valid-subset test" in error
    assert error.count("\n") == 1
    assert main([*options, "--architecture", str(tmp_path / "a.json")]) == 2
    assert "none.pt" in capsys.readouterr().err
