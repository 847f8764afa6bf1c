"""Names of a subnet's weights."""

from __future__ import annotations

from typing import NamedTuple

import torch

from nas_core.layers.weights import Affine, named_tensors


class Pair(NamedTuple):
    first: Affine
    rest: tuple[Affine | None, ...]
    heads: int


def affine() -> Affine:
    return Affine(torch.rand(2, 3), torch.rand(2))


def test_names_are_paths_of_fields_and_positions() -> None:
    pair = Pair(affine(), (affine(), None, affine()), 4)
    named = dict(named_tensors(pair))
    assert list(named) == ["first.weight", "first.bias", "rest.0.weight", "rest.0.bias", "rest.2.weight", "rest.2.bias"]
    last = pair.rest[2]
    assert last is not None
    assert named["rest.2.bias"] is last.bias
