"""`nas-ext quickstart` lists, writes and rejects."""

from __future__ import annotations

from pathlib import Path

import pytest

from nas_core.cli import main
from nas_core.errors import DataError
from nas_core.quickstart import QUICKSTARTS, Quickstart


class Toy(Quickstart):
    """A quickstart that needs a package which nobody has, or writes outside its folder."""

    name = "toy"
    purpose = "show what a toy is"
    templates = "nas_core/quickstart/templates/predictor"

    def __init__(self, modules: tuple[str, ...] = (), outside: str = "") -> None:
        self.modules, self.extra, self._outside = modules, "toys" if modules else "", outside  # type: ignore[misc]

    def data(self) -> dict[str, str | bytes]:
        return {self._outside or "data/one.txt": "1", "data/two.bin": b"2"}


@pytest.fixture
def toy(request: pytest.FixtureRequest):
    def register(**options: object) -> Toy:
        request.addfinalizer(lambda: QUICKSTARTS.unregister("toy"))
        return QUICKSTARTS.register("toy", Toy(**options))  # type: ignore[arg-type]

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
    monkeypatch.setattr(QUICKSTARTS, "_offered", lambda: {"broken": "nowhere.at.all:THING"})  # private: an adapter's
    assert main(["quickstart"]) == 0
    assert "  broken       not usable here: quickstart 'broken' (nowhere.at.all:THING)" in capsys.readouterr().out


def test_a_folder_is_written_and_the_next_command_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], toy
) -> None:
    toy()
    monkeypatch.chdir(tmp_path)
    assert main(["quickstart", "toy"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "quickstart-toy: README.md, run.py, data/ (2 files)"
    assert lines[1].startswith("next: cd quickstart-toy && python run.py    # about 1 minute;")
    assert (tmp_path / "quickstart-toy" / "data" / "two.bin").read_bytes() == b"2"
    assert main(["quickstart", "toy"]) == 2
    assert "quickstart-toy is not empty" in capsys.readouterr().err
    assert main(["quickstart", "toy", "--force"]) == 0
    (tmp_path / "empty").mkdir()
    assert main(["quickstart", "toy", "empty"]) == 0


def test_no_file_leaves_the_folder(tmp_path: Path, toy) -> None:
    with pytest.raises(DataError, match="has a file outside its folder"):
        toy(outside="../escaped.txt").write(tmp_path / "new")
    assert not (tmp_path / "escaped.txt").exists() and not (tmp_path / "new").exists()
