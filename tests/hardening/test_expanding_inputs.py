"""Small files of spaces that would take gigabytes are rejected; YAML and JSON by their depth."""

from __future__ import annotations

from pathlib import Path

import pytest

from nas_core.errors import DataError, SpaceError
from nas_core.files.journal import read_jsonl
from nas_core.files.reading import parse_json, parse_yaml, read_json, read_yaml
from nas_core.space import load_space

TEXTS = {
    "deep": ("a: " + "[" * 3_000, "nested too deep"),
    "date": ("a: 2026-13-45", "month"),
    "number": ("a: !!int abc", "invalid literal"),
    "object": ("a: !!python/object/apply:os.getcwd []", "constructor"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_yaml(name: str, tmp_path: Path) -> None:
    text, message = TEXTS[name]
    with pytest.raises(ValueError, match=message):
        parse_yaml(text)
    (tmp_path / "f.yml").write_text(text)
    with pytest.raises(DataError, match="not valid YAML"):
        read_yaml(tmp_path / "f.yml")


def test_json(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("[" * 200_000 + "\n{}\n")
    for read in (read_json, read_jsonl):
        with pytest.raises(DataError, match="nested too deep"):
            read(tmp_path / "f")
    assert parse_json('["\\ud83d\\ude00", ' + "9" * 300 + "]") == ["😀", int("9" * 300)]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ("{d: [1000000], f: {options: [1, 2], per: d}}", "1000000 layers"),
        ("{d: [900], f: {options: " + str([*range(2000)]) + ", per: d}}", "options over all layers"),
        ("{f: " + str([*range(32768)]) + "}", "32768 options"),
    ],
)
def test_spaces(choices: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "s.yml").write_text(f"choices: {choices}\n")
    with pytest.raises(SpaceError, match=message):
        load_space(tmp_path / "s.yml")
