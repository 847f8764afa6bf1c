"""The pages of the reference are those that the script writes, and name every command."""

from __future__ import annotations

import re

import pytest

from nas_core.cli import COMMANDS, LAB
from tests.toys import ROOT

FOLDER = ROOT / "docs" / "reference"


def test_pages_are_fresh() -> None:
    pytest.importorskip("griffe", reason="needs the extra docs")
    from tools.reference import PAGES, load, page

    sources = load()
    for name in PAGES:
        text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        assert text == page(name, sources), f"{name}.md: run python -m tools.reference"


def test_every_command_is_listed() -> None:
    text = (FOLDER / "command-line.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`nas-ext ((?:lab )?[\w-]+)", text))
    assert listed >= {*(command.name for command in COMMANDS), *(f"lab {command.name}" for command in LAB), "nni"}
