"""Architectures as values, and files of architectures and spaces."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

from nas_core.space import Architecture, get_space, list_spaces, load_space, save_space
from tests.space.tiny import tiny_space

GENES = {"encoder.layers": 2, "encoder.ffn_dim": [64, 32], "norm": "pre", "dropout": 0.1}
WRITTEN = """
fixed: {qkv_dim: 128}
choices:
  encoder.layers: [3, 2]
  encoder.ffn_dim: {options: [512, 256], per: encoder.layers}
  encoder.heads: {options: [[4], [4, 2], [2]], per: encoder.layers, scale: 4}
  decoder.cross: {options: [-1, 1], codes: [[-1, 1], [1, 2]]}
"""


def test_equal_networks_are_equal_values_whatever_the_order_or_container() -> None:
    first = Architecture(GENES)
    second = Architecture({name: tuple(g) if isinstance(g, list) else g for name, g in reversed(GENES.items())})
    assert first == second and hash(first) == hash(second)
    assert first.key == second.key == "2b8bc4954c"
    assert pickle.loads(pickle.dumps(first)) == first
    first.to_dict()["encoder.ffn_dim"].append(1)
    assert first.numbers("encoder.ffn_dim") == (64, 32)


def test_an_architecture_file_keeps_further_keys(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    Architecture(GENES).save(path, metrics={"loss": 2.5})
    assert Architecture.load(path) == Architecture(GENES)
    assert json.loads(path.read_text())["metrics"] == {"loss": 2.5}


def test_spaces_round_trip(tmp_path: Path) -> None:
    for space in (tiny_space(), *map(get_space, list_spaces())):
        save_space(space, tmp_path / "space.yml")
        reloaded = load_space(tmp_path / "space.yml")
        assert (reloaded, reloaded.name, reloaded.cardinality()) == (space, space.name, space.cardinality())


def test_a_written_file_is_a_space_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(WRITTEN)
    space = get_space(path)
    assert space.name == "mine" and space.cardinality() == (2**3 * 2 + 2**2 * 2) * 2
    assert space.smallest()["decoder.cross"] == -1 and space.largest()["encoder.heads"] == (4, 4, 2)
