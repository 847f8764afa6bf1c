"""Commands of adapters."""

from __future__ import annotations

from pathlib import Path

import pytest

from nas_core.adapters import Adapter
from nas_core.cli import main
from tests.toys import plug_in


class Odd(Adapter):
    name = "odd"
    commands = "broken_command:app"


ODD = Odd()


def test_a_command_that_does_not_import_is_one_line_and_leaves_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken_command.py").write_text("raise RuntimeError('no licence')", encoding="utf-8")
    plug_in(tmp_path, monkeypatch, "nas_ext.hosts", "odd", "tests.cli.test_main:ODD")
    assert main(["--help"]) == 0
    assert main(["lab", "space", "list"]) == 0
    capsys.readouterr()
    assert main(["odd"]) == 2
    failure = "cannot be imported: RuntimeError: no licence; repair or uninstall its package"
    expected = f"command 'odd' (broken_command:app) {failure}"
    assert capsys.readouterr().err == f"nas-ext: error: {expected}\n"
