"""Which space is asked for around a trained network."""

from __future__ import annotations

import pytest

from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.space import SearchSpace
from nas_core.supernet.elastic.asked import is_made, made, varying
from nas_core.supernet.elastic.translation_space import SideSizes, auto_space

SIDE = SideSizes(3, 64, 128, 4)
SEVERAL = auto_space("around", SIDE, SIDE, 16, ("softmax", "linear"))


def chosen(space: SearchSpace) -> set[str]:
    return {choice.name for choice in space.choices if any(len(row) > 1 for row in choice.options)}


def test_all_of_it_or_these_genes_of_all_sides() -> None:
    assert made("auto", lambda: SEVERAL) == SEVERAL
    kinds = {name for name in chosen(SEVERAL) if name.endswith("attention")}
    narrow = made("auto:layers, decoder.ffn_dim", lambda: SEVERAL)
    assert kinds and chosen(narrow) == {"encoder.layers", "decoder.layers", "decoder.ffn_dim", *kinds}
    assert narrow.largest() == SEVERAL.largest() and narrow.name == "around-layers-decoder.ffn_dim"
    assert chosen(made("attention", lambda: SEVERAL)) == kinds


def test_what_is_no_gene_of_it_is_named() -> None:
    with pytest.raises(UnknownChoiceError, match="Did you mean 'ffn_dim'"):
        varying(SEVERAL, ["fnn_dim"])
    with pytest.raises(UnknownChoiceError, match="'arbitrary_cross'"):
        varying(SEVERAL, ["arbitrary_cross"])  # it has one option
    with pytest.raises(ConfigError, match="--space auto: names no gene"):
        made("auto:", lambda: SEVERAL)


@pytest.mark.parametrize(
    ("space", "whether"),
    [("auto", True), ("auto:layers", True), ("attention", True), ("auto.yml", False), ("a:auto", False)],
)
def test_what_is_made_and_what_is_read(space: str, whether: bool) -> None:
    assert is_made(space) is whether
