"""Bad input is rejected in one line that names the value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas_core.errors import ArchitectureError, DataError, NasExtError, SpaceError, UnknownChoiceError
from nas_core.space import Architecture, Choice, SearchSpace, get_space, load_space
from nas_core.space.bert import encoder_layers
from nas_core.space.image import image_architecture, image_layers, token_grid
from nas_core.space.mformer import published_translation
from nas_core.space.stack import transformer_layers
from tests.space.tiny import tiny_space

SPACE = tiny_space()
GENES = {"layers": 2, "embed_dim": 8, "heads": (1, 2), "head_dim": 4, "ffn_dim": (8, 16)}
BERT = get_space("supershaper_bert_small").largest().to_dict()
VALUE = Architecture({"encoder.layers": 2, "encoder.ffn_dim": [64, 32], "norm": "pre"})


def layers(**changes: Any) -> Architecture:
    return Architecture({name: gene for name, gene in {**GENES, **changes}.items() if gene is not None})


@pytest.mark.parametrize(
    ("call", "error", "value"),
    [
        (lambda: SPACE.encode(SPACE.smallest(), "sumary"), UnknownChoiceError, "'sumary'"),
        (lambda: SPACE.feature_names("sumary"), UnknownChoiceError, "'sumary'"),
        (lambda: SPACE.choice("encoder.ffn"), UnknownChoiceError, "'encoder.ffn'"),
        (lambda: get_space("hat_smal"), UnknownChoiceError, "'hat_smal'"),
        (lambda: image_architecture("vanilla_linear"), UnknownChoiceError, "'vanilla_linear'"),
        (lambda: published_translation("mformr"), UnknownChoiceError, "'mformr'"),
        (lambda: SearchSpace("bad", []), SpaceError, "no choices"),
        (lambda: SearchSpace("bad", [Choice.make("a", [1]), Choice.make("a", [2])]), SpaceError, "'a'"),
        (lambda: SearchSpace("bad", [Choice.make("a", [1], "depth", 2)]), SpaceError, "'depth'"),
        (lambda: SearchSpace("bad", [Choice.make("n", [1]), Choice.make("a", [1], "n", 3)]), SpaceError, "3 layers"),
        (lambda: SearchSpace("bad", [Choice.make("n", ["x"]), Choice.make("a", [1], "n", 2)]), SpaceError, "['x']"),
        (lambda: SearchSpace("bad", [Choice.make("n", [2], "n", 2)]), SpaceError, "'n'"),
        (lambda: Choice.make("a", []), SpaceError, "'a'"),
        (lambda: Choice.make("a", [1, 1]), SpaceError, "[1, 1]"),
        (lambda: Choice.make("a", [True]), SpaceError, "True"),
        (lambda: Choice.make("a", [float("nan")]), SpaceError, "nan"),
        (lambda: Choice.make("a", [[1], 2]), SpaceError, "[[1], 2]"),
        (lambda: Architecture({"a": None}), ArchitectureError, "None"),
        (lambda: Architecture({"a": [[1]]}), ArchitectureError, "[[1]]"),
        (lambda: VALUE["decoder.layers"], ArchitectureError, "'decoder.layers'"),
        (lambda: VALUE.number("encoder.ffn_dim"), ArchitectureError, "(64, 32)"),
        (lambda: VALUE.numbers("norm"), ArchitectureError, "'pre'"),
        (lambda: transformer_layers(layers(ffn_dim=(8,))), ArchitectureError, "[8]"),
        (lambda: image_layers(layers(heads=(1, 1, 1))), ArchitectureError, "[1, 1, 1]"),
        (lambda: transformer_layers(layers(layers="two")), ArchitectureError, "'two'"),
        (lambda: transformer_layers(layers(head_dim=None)), ArchitectureError, "'head_dim'"),
        (lambda: token_grid(Architecture({"image_size": 230, "patch_size": 16})), ArchitectureError, "230"),
        (lambda: encoder_layers(Architecture({**BERT, "hidden_dim": [30] * 4})), ArchitectureError, "30"),
        (lambda: get_space("nowhere.yml"), DataError, "nowhere.yml"),
        (lambda: Architecture.load("nowhere.json"), DataError, "nowhere.json"),
    ],
)
def test_calls(call: Callable[[], Any], error: type[NasExtError], value: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert value in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("read", "text", "error", "value"),
    [
        (load_space, "choices:\n\ta: [1", SpaceError, "not readable as YAML"),
        (load_space, "- 1", SpaceError, "expected a mapping"),
        (load_space, "choices: {}", SpaceError, "no choices"),
        (load_space, "choises: {}\nchoices: {a: [1]}", SpaceError, "'choises'"),
        (load_space, "choices: {a: 3}", SpaceError, "3"),
        (load_space, "choices: {a: [null, 1]}", SpaceError, "None"),
        (load_space, "choices: {1: [1, 2]}", SpaceError, "gene 1"),
        (load_space, "choices: {a: {options: [1], pre: l}}", SpaceError, "'pre'"),
        (load_space, "choices: {a: {options: [1], per: l}}", SpaceError, "'l'"),
        (load_space, "choices: {l: [1.5], a: {options: [1], per: l}}", SpaceError, "[1.5]"),
        (load_space, "choices: {l: [2], a: {options: [[1], [1], [1]], per: l}}", SpaceError, "3 layers"),
        (load_space, "choices: {a: {options: [x], codes: [[x, y]]}}", SpaceError, "'y'"),
        (load_space, "choices: {a: {options: [1], scale: big}}", SpaceError, "'big'"),
        (load_space, "choices: {a: {options: [1], scale: -1}}", SpaceError, "-1.0"),
        (load_space, "fixed: {b: [1]}\nchoices: {a: [1]}", SpaceError, "[1]"),
        (load_space, "fixed: {a: 1}\nchoices: {a: [1]}", SpaceError, "'a'"),
        (Architecture.load, "{", DataError, "bad"),
        (Architecture.load, '{"genes": 1}', ArchitectureError, "bad"),
        (Architecture.load, '{"format": "other", "genes": {}}', ArchitectureError, "'other'"),
        (Architecture.load, '{"version": 99, "genes": {}}', ArchitectureError, "99"),
    ],
)
def test_files(read: Callable[[Path], Any], text: str, error: type[NasExtError], value: str, tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_text(text)
    with pytest.raises(error) as caught:
        read(path)
    assert value in str(caught.value) and "\n" not in str(caught.value)
