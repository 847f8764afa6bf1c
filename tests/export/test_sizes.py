"""Sizes that an exported file leaves open, from the model.json beside it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas_core.cli import main
from nas_core.errors import DataError
from nas_core.export.sizes import usual_sizes
from nas_core.files import write_json
from tests.export.tiny import LIMIT


def told(folder: Path, **changes: Any) -> Path:
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
        **changes,
    }
    write_json(folder / "model.json", {"format": "nas-ext/export", "version": 1, "parts": {"step": part}})
    return folder / "step.onnx"


def test_a_sentence_of_thirty_words_within_the_limits(tmp_path: Path) -> None:
    path = told(tmp_path)
    assert usual_sizes(path, {}) == {"batch": 1, "past": 12, "source_x3": 90}
    assert usual_sizes(path, {"source_x3": 5}) == {"batch": 1, "past": 12}
    assert usual_sizes(path, {}, batch=4) == {"past": 12, "source_x3": 90}
    assert usual_sizes(path, {"key": (4, 2, 60, 4)}) == {"past": 12}
    assert usual_sizes(path, {"token": (4,)}) == {"past": 12, "source_x3": 90}


def test_other_files_have_none(tmp_path: Path) -> None:
    assert usual_sizes(tmp_path / "net.onnx", {}) == {}
    path = told(tmp_path)
    assert usual_sizes(path.with_name("other.onnx"), {}) == {}
    for content in ("{", "[1]", json.dumps({"format": "another", "parts": {"step": {"file": "step.onnx"}}})):
        (tmp_path / "model.json").write_text(content)
        assert usual_sizes(path, {}) == {}


@pytest.mark.parametrize("changes", [{"inputs": [1]}, {"inputs": None}, {"largest": [3]}, {"largest": {"past": "x"}}])
def test_a_damaged_description(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"model\.json is damaged; export the model again"):
        usual_sizes(told(tmp_path, **changes), {})


@pytest.mark.onnx
def test_an_exported_decoding_step_is_predicted(
    exported: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = exported("softmax")
    step = str(folder / "decoder_step.onnx")
    assert main(["latency", "predict", step, str(folder / "encoder.onnx")]) == 0
    out, err = capsys.readouterr()
    assert out.count(".onnx") == 2
    assert f"decoder_step.onnx: batch=1, past={LIMIT - 1}, source={LIMIT}, source_x2={2 * LIMIT}, within" in err
    for given in (["--shapes", "past=3", "--batch", "2"], ["--shapes", "token=2,"]):
        assert main(["latency", "predict", step, *given]) == 0
        assert "decoder_step.onnx: " in (err := capsys.readouterr().err) and "batch=1" not in err
    alone = shutil.copy(step, tmp_path)
    assert main(["latency", "predict", str(alone)]) == 2
    err = capsys.readouterr().err
    assert "has no number; give --shapes token=1, with your sizes, or --batch 1" in err and "shapes={" not in err
