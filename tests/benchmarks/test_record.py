"""Results have the date and the command of their measurement."""

from __future__ import annotations

import datetime
from pathlib import Path

from benchmarks.parts.record import command, write_result
from nas_core.files.reading import read_json


def test_command_has_no_folders() -> None:
    text = command(
        "/somewhere/benchmarks/onnx/onnx_export.py", ["a=/data/run 1/subnet.pt", "--data", "../bin", "--n", "3"]
    )
    assert text == "python -m benchmarks onnx_export a=subnet.pt --data bin --n 3"
    assert (
        command("x.py", ["--strategies", "ranknas, nn-former"])
        == "python -m benchmarks x --strategies 'ranknas, nn-former'"
    )


def test_a_result_begins_with_its_date_and_command(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    write_result(file, {"rows": [1]}, "first")
    before = datetime.date.today().isoformat()
    write_result(file, {"rows": [2]}, "second")
    content = read_json(file)
    assert before <= content["measured"].pop("date") <= datetime.date.today().isoformat()
    assert content == {"measured": {"command": "second"}, "rows": [2]}


def test_added_rows_keep_earlier_commands_once(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    for run in ("first", "second", "second", "first", "third"):
        write_result(file, {**(read_json(file) if file.exists() else {}), "rows": []}, run, adds=True)
    measured = read_json(file)["measured"]
    assert measured["command"] == "third"
    assert [entry["command"] for entry in measured["earlier"]] == ["second", "first"]
