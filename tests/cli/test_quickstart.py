"""`nas-ext quickstart` lists, writes and rejects."""

from __future__ import annotations

from pathlib import Path

import pytest

from nas_core.cli import main
from nas_core.quickstart import QUICKSTARTS, Quickstart

FILES = {"data/one.txt": "1", "data/two.bin": b"2"}


@pytest.fixture
def toy(request: pytest.FixtureRequest):
    def register(modules: tuple[str, ...] = ()) -> None:
        request.addfinalizer(lambda: QUICKSTARTS.unregister("toy"))
        QUICKSTARTS.register(
            "toy",
            Quickstart(
                "toy", "show what a toy is", "nas_core/quickstart/templates/predictor", lambda: dict(FILES),
                script="run.py", modules=modules, extra="toys" if modules else "",
            ),
        )  # fmt: skip

    return register


def test_all_are_listed_with_what_they_need(capsys: pytest.CaptureFixture[str], toy) -> None:
    toy(modules=("absent_host",))
    assert main(["quickstart"]) == 0
    output = capsys.readouterr().out
    assert "  predictor    rank untrained networks by accuracy" in output
    assert "about 1 minute, needs onnx\n" in output
    assert "  toy          show what a toy is\n" in output
    assert "not usable here: quickstart 'toy' needs the package absent_host, which is not installed: run pip" in output


def test_what_does_not_import_is_listed_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(QUICKSTARTS._own, "broken", "nowhere.at.all:THING")  # private: a built-in target
    assert main(["quickstart"]) == 0
    assert "  broken       not usable here: quickstart 'broken' (nowhere.at.all:THING)" in capsys.readouterr().out


def test_a_folder_is_written_and_the_next_command_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], toy
) -> None:
    toy()
    monkeypatch.chdir(tmp_path)
    assert main(["quickstart", "toy"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "quickstart-toy: README.md, cells.jsonl, run.py, data/ (2 files)"
    assert lines[1].startswith("next: cd quickstart-toy && python run.py    # about 1 minute;")
    assert (tmp_path / "quickstart-toy" / "data" / "two.bin").read_bytes() == b"2"
    assert main(["quickstart", "toy"]) == 2
    assert "quickstart-toy is not empty" in capsys.readouterr().err
    assert main(["quickstart", "toy", "--force"]) == 0
    (tmp_path / "empty").mkdir()
    assert main(["quickstart", "toy", "empty"]) == 0
