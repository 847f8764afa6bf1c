"""Architectures as values, and their files."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from nas_core.errors import ArchitectureError, DataError
from nas_core.space import Architecture

GENES = {"encoder.layers": 2, "encoder.ffn_dim": [64, 32], "norm": "pre", "dropout": 0.1}


def test_equal_networks_are_equal_values_whatever_the_order_or_container() -> None:
    first = Architecture(GENES)
    second = Architecture({name: tuple(g) if isinstance(g, list) else g for name, g in reversed(GENES.items())})
    assert first == second
    assert hash(first) == hash(second)
    assert first.key == second.key == "2b8bc4954c"
    assert {first: 1}[second] == 1
    assert pickle.loads(pickle.dumps(first)) == first


def test_it_cannot_be_changed() -> None:
    architecture = Architecture(GENES)
    with pytest.raises(TypeError):
        architecture["norm"] = "post"  # type: ignore[index]
    assert isinstance(architecture["encoder.ffn_dim"], tuple)
    architecture.to_dict()["encoder.ffn_dim"].append(1)
    assert architecture.numbers("encoder.ffn_dim") == (64, 32)


@pytest.mark.parametrize("gene", [None, True, {"a": 1}, [[1]], [None]])
def test_other_genes_are_refused(gene: Any) -> None:
    with pytest.raises(ArchitectureError, match="expected a number"):
        Architecture({"a": gene})


def test_wrong_access_says_what_there_is() -> None:
    architecture = Architecture(GENES)
    with pytest.raises(ArchitectureError, match="it has: dropout, encoder"):
        architecture["decoder.layers"]
    with pytest.raises(ArchitectureError, match="one integer"):
        architecture.number("encoder.ffn_dim")
    with pytest.raises(ArchitectureError, match="per layer"):
        architecture.numbers("norm")


def test_file_round_trip_keeps_what_stands_beside(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    Architecture(GENES).save(path, metrics={"loss": 2.5})
    assert Architecture.load(path) == Architecture(GENES)
    assert json.loads(path.read_text())["metrics"] == {"loss": 2.5}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", DataError),
        ("[]", ArchitectureError),
        ('{"genes": 1}', ArchitectureError),
        ('{"format": "other", "genes": {}}', ArchitectureError),
        ('{"format": "nas-ext/architecture", "version": 99, "genes": {}}', ArchitectureError),
    ],
)
def test_foreign_files_are_refused_in_one_line(tmp_path: Path, text: str, error: type[Exception]) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(error) as caught:
        Architecture.load(path)
    assert "\n" not in str(caught.value)
    assert "a.json" in str(caught.value)
    with pytest.raises(DataError):
        Architecture.load(tmp_path / "missing.json")
