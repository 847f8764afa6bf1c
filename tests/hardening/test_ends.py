"""How commands end from outside, and what tables hold that others open."""

from __future__ import annotations

import csv
import io
import signal
from pathlib import Path

import pytest

from nas_core.cli import main
from nas_core.files.writing import csv_cell, write_atomic
from nas_core.predictor.files import write_predictions
from nas_core.report.tables import Column, Table


def test_who_is_asked_to_end_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object, **__: object) -> None:
        monkeypatch.setattr("os.fsync", lambda _: signal.raise_signal(signal.SIGTERM))
        write_atomic(tmp_path / "file", "new")

    (tmp_path / "file").write_text("old")
    monkeypatch.setattr("nas_core.cli.application", lambda arguments: asked)
    assert main(["lab", "space", "list"]) == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_text() == "old"


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "-1 1 A1", "@SUM(A1)", "\t=1"])
def test_a_cell_is_no_formula(text: str, tmp_path: Path) -> None:
    rows = [{"record": 1, text: "x", "name": text, "number": -2.5, "prediction": 1.0}]
    write_predictions(tmp_path / "p.csv", rows)
    shown = Table([Column("name", "name"), Column("number", "number", "g")], rows).csv()
    for content in ((tmp_path / "p.csv").read_text(), shown):
        table = list(csv.reader(io.StringIO(content, newline="")))
        assert f"'{text}" in table[1] and "-2.5" in table[1]
        assert not [cell for line in table for cell in line if cell == text]


@pytest.mark.parametrize("value", ["-5", "+1e3", "-1 1 2", "-1", "plain", "", -5, None, 0.5])
def test_other_cells_stay(value: object) -> None:
    assert csv_cell(value) == value
