"""Small files that would take gigabytes are rejected by what they declare; YAML and JSON by their size and depth."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.errors import DataError, NasExtError, SpaceError
from nas_core.files.journal import read_jsonl
from nas_core.files.reading import MOST_OWN_TEXT, parse_json, parse_yaml, read_json, read_yaml
from nas_core.latency import load_latency_model
from nas_core.predictor.files import read_records
from nas_core.report.architecture import architecture_picture
from nas_core.space import Architecture, load_space

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
    for read, error in ((read_yaml, DataError), (load_space, SpaceError)):
        with pytest.raises(error, match="not readable as YAML"):
            read(tmp_path / "f.yml")


def test_a_long_text_from_others_is_rejected_and_our_own_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("format: x\n" + "# x\n" * 120_000)
    with pytest.raises(DataError, match=r"not readable as YAML \(more than 400 kB"):
        read_yaml(tmp_path / "config.yaml")
    assert read_yaml(tmp_path / "config.yaml", MOST_OWN_TEXT) == {"format": "x"}


def test_json(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("[" * 200_000 + "\n{}\n")
    for read in (read_json, read_jsonl):
        with pytest.raises(DataError, match="nested too deep"):
            read(tmp_path / "f")
    assert parse_json('["\\ud83d\\ude00", ' + "9" * 300 + "]") == ["😀", int("9" * 300)]


def test_pipes_and_folders(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (read_json, read_jsonl, read_yaml, load_space):
        with pytest.raises(DataError, match="is a pipe"):
            read(tmp_path / "pipe")
        with pytest.raises(NasExtError):
            read(tmp_path)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ("{d: [1000000], f: {options: [1, 2], per: d}}", "1000000 layers"),
        ("{d: [900], f: {options: " + str([*range(2000)]) + ", per: d}}", "options of all layers"),
        ("{f: " + str([*range(32768)]) + "}", "32768 options"),
    ],
)
def test_spaces(choices: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "s.yml").write_text(f"choices: {choices}\n")
    with pytest.raises(SpaceError, match=message):
        load_space(tmp_path / "s.yml")


def test_arrays_of_a_latency_model(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "m.npz", header=np.array("{}"), weights=np.zeros(2**28, np.uint8))
    with pytest.raises(DataError, match=r"its arrays declare \d+ bytes"):
        load_latency_model(tmp_path / "m.npz")


def test_records_with_many_nodes(tmp_path: Path) -> None:
    graph = {"ops": [0] * 4000, "edges": [[node, node + 1] for node in range(3999)]}
    (tmp_path / "r.jsonl").write_text(json.dumps({"graph": graph}))
    assert len(read_records(tmp_path / "r.jsonl").graphs) == 1


@pytest.mark.parametrize(
    ("genes", "message"),
    [
        ({"x.a": [1] * 1000}, "too many for one picture"),
        ({"x.a": ["a", 1]}, "mixes numbers and names"),
    ],
)
def test_pictures(genes: dict[str, Any], message: str) -> None:
    with pytest.raises(NasExtError, match=message):
        architecture_picture({"a": Architecture(genes)})
