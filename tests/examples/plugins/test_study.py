"""The study of a third party."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.plugins.study import ENDS
from nas_core.cli import main
from nas_core.files.reading import read_json
from nas_core.studies import STUDIES
from tests.studies.supernets import LinearSupernet


def test_it_is_a_command_with_its_own_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STUDIES._registered, "ends", ENDS)  # private: forgotten after the test
    monkeypatch.setattr("nas_core.studies.base.open_supernet", lambda path, **options: LinearSupernet())
    arguments = ["--checkpoint", str(tmp_path / "line.pt"), "--out", str(tmp_path), "--set", "metric=loss"]
    assert main(["lab", "study", "ends", *arguments]) == 0
    (row,) = read_json(tmp_path / "ends.json")["rows"]
    # With width 1 the losses are 1 and 1, with width 3 they are 9 and 16.
    assert (row["smallest"], row["largest"], row["apart"]) == (1.0, 12.5, -11.5)
