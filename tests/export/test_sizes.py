"""Sizes that an exported file leaves open, from the model.json of its folder."""

from __future__ import annotations

import json
from pathlib import Path

from nas_core.export.folder import default_sizes
from nas_core.files.writing import write_json


def exported(folder: Path) -> Path:
    """A model.json with one part."""
    part = {
        "file": "step.onnx",
        "inputs": [
            {"name": "token", "shape": ["batch"]},
            {"name": "position", "shape": []},
            {"name": "key", "shape": ["batch", 2, "source_x3", 4]},
            {"name": "past", "shape": ["batch", 2, "past", 4]},
        ],
        "largest": {"past": 12, "source_x3": 300},
    }
    write_json(folder / "model.json", {"format": "nas-ext/export", "version": 1, "parts": {"step": part}})
    return folder / "step.onnx"


def test_a_sentence_of_thirty_words_within_the_limits(tmp_path: Path) -> None:
    path = exported(tmp_path)
    assert default_sizes(path, {}) == {"batch": 1, "past": 12, "source_x3": 90}
    assert default_sizes(path, {"source_x3": 5}) == {"batch": 1, "past": 12}
    assert default_sizes(path, {}, batch=4) == {"past": 12, "source_x3": 90}
    assert default_sizes(path, {"key": (4, 2, 60, 4)}) == {"past": 12}
    assert default_sizes(path, {"token": (4,)}) == {"past": 12, "source_x3": 90}


def test_other_files_have_none(tmp_path: Path) -> None:
    assert default_sizes(tmp_path / "net.onnx", {}) == {}
    path = exported(tmp_path)
    assert default_sizes(path.with_name("other.onnx"), {}) == {}
    for content in ("{", "[1]", json.dumps({"format": "another", "parts": {"step": {"file": "step.onnx"}}})):
        (tmp_path / "model.json").write_text(content)
        assert default_sizes(path, {}) == {}
