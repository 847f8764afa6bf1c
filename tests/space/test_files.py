"""Spaces in YAML: round trip, hand-written files, and one-line errors for bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from nas_core.errors import DataError, SpaceError
from nas_core.space import get_space, list_spaces, load_space, save_space
from tests.space.tiny import tiny_space

WRITTEN = """
fixed: {qkv_dim: 128}
choices:
  encoder.layers: [3, 2]
  encoder.ffn_dim: {options: [512, 256], per: encoder.layers}
  encoder.heads: {options: [[4], [4, 2], [2]], per: encoder.layers, scale: 4}
  decoder.cross: {options: [-1, 1], codes: [[-1, 1], [1, 2]]}
"""


@pytest.mark.parametrize("name", [*list_spaces(), "tiny"])
def test_round_trip(name: str, tmp_path: Path) -> None:
    space = tiny_space() if name == "tiny" else get_space(name)
    save_space(space, tmp_path / "space.yml")
    again = load_space(tmp_path / "space.yml")
    assert again == space
    assert again.name == space.name
    assert again.cardinality() == space.cardinality()


def test_a_written_file_is_a_space_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(WRITTEN)
    space = get_space(path)
    assert space.name == "mine"
    assert space.cardinality() == (2**3 * 2 + 2**2 * 2) * 2
    assert space.smallest()["decoder.cross"] == -1
    assert space.largest()["encoder.heads"] == (4, 4, 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("choices:\n\ta: [1", "not readable as YAML"),
        ("- 1", "expected a mapping"),
        ("choices: {}", "no choices"),
        ("choises: {}\nchoices: {a: [1]}", "choises"),
        ("choices: {a: 3}", "expected a list"),
        ("choices: {a: []}", "no options"),
        ("choices: {a: [null, 1]}", "None"),
        ("choices: {a: [{x: 1}]}", "number or a name"),
        ("choices: {1: [1, 2]}", "no name"),
        ("choices: {a: {options: [1], pre: l}}", "pre"),
        ("choices: {a: {options: [1], per: l}}", "repeated by 'l'"),
        ("choices: {a: {options: [1], per: [l]}}", "repeated by"),
        ("choices: {l: [1.5], a: {options: [1], per: l}}", "layer counts"),
        ("choices: {l: [], a: {options: [1], per: l}}", "no options"),
        ("choices: {l: [2], a: {options: [[1], 2], per: l}}", "mixes"),
        ("choices: {l: [2], a: {options: [[1], [1], [1]], per: l}}", "3 layers"),
        ("choices: {a: {options: [x], codes: [[x, y]]}}", "codes"),
        ("choices: {a: {options: [x], codes: [x]}}", "codes"),
        ("choices: {a: {options: [1], scale: big}}", "scale"),
        ("choices: {a: {options: [1], scale: .nan}}", "scale nan"),
        ("choices: {a: {options: [1], scale: -1}}", "scale -1.0"),
        ("choices: {a: {options: [x], codes: [[x, .inf]]}}", "pairs"),
        ("choices: {a: {options: [x], codes: [[x, 1.0e+39]]}}", "code 1e\\+39"),
        ("choices: {a: [.inf, 1]}", "option inf"),
        ("choices: {a: [1.0e+39, 1]}", "option 1e\\+39"),
        ("choices: {a: [1]}\nfixed: {b: .nan}", "one number or name"),
        ("fixed: [1]\nchoices: {a: [1]}", "fixed"),
        ("fixed: {b: [1]}\nchoices: {a: [1]}", "fixed"),
        ("fixed: {a: 1}\nchoices: {a: [1]}", "twice"),
    ],
)
def test_bad_files_are_refused_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yml"
    path.write_text(text)
    with pytest.raises(SpaceError, match=said) as caught:
        load_space(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(DataError, match=r"nowhere\.yml"):
        get_space("nowhere.yml")
