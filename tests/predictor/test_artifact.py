"""Predictors as files: saved, loaded, damaged, altered."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nas_core.errors import ConfigError, DataError
from nas_core.predictor import NNFormerPredictor
from nas_core.predictor.artifact import read_artifact, write_artifact


def test_wrong_files(tmp_path: Path, fitted: NNFormerPredictor) -> None:
    path = tmp_path / "p.safetensors"
    fitted.save(path)
    content, (header, tensors) = path.read_bytes(), read_artifact(path, "nn-former")
    stream = random.Random(0)
    flipped = []
    for _ in range(40):
        changed = bytearray(content)
        changed[stream.randrange(len(content))] ^= 1 << stream.randrange(8)
        flipped.append(bytes(changed))
    version = content.replace(b'\\"version\\": 2', b'\\"version\\": 9')
    for damaged, message in (
        *((part, "safetensors") for part in (content[: len(content) // 2], content[:20], b"", b"x" * 100)),
        (version, "version 9"),
        (content.replace(b"nn-former", b"nn-farmer"), "nn-farmer"),
        *((part, "") for part in flipped),
    ):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=message) as caught:
            NNFormerPredictor.load(path)
        assert "\n" not in str(caught.value)
    for changes, parts in (
        *(({name: None}, tensors) for name in ("known", "recipe", "scale", "info")),
        ({"recipe": {**header["recipe"], "members": 2}}, tensors),
        ({}, {name: tensors[name] for name in list(tensors)[1:]}),
        ({}, {**tensors, "0.head.weight": tensors["0.head.weight"].T}),
    ):
        write_artifact(path, "nn-former", {**header, **changes}, parts)
        with pytest.raises(DataError, match="is damaged"):
            NNFormerPredictor.load(path)
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="not fitted"):
        NNFormerPredictor("paper").save(path)
    assert path.read_bytes() == content
