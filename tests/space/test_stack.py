"""What a layer of an architecture of one stack is, and what is wrong with malformed ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from nas_core.errors import ArchitectureError
from nas_core.space import Architecture
from nas_core.space.image import image_layers
from nas_core.space.stack import TransformerLayer, transformer_layers

GENES = {"layers": 2, "embed_dim": 8, "heads": (1, 2), "head_dim": 4, "ffn_dim": (8, 16)}


@pytest.mark.parametrize("layers", [transformer_layers, image_layers])
def test_layers(layers: Callable[[Architecture], Any]) -> None:
    softmax = (TransformerLayer(8, 1, 4, "softmax"), TransformerLayer(16, 2, 8, "softmax"))
    assert layers(Architecture(GENES)) == softmax
    one_for_all = {**GENES, "heads": 3, "attention": ("local", "linear")}
    assert layers(Architecture(one_for_all)) == (
        TransformerLayer(8, 3, 12, "local"),
        TransformerLayer(16, 3, 12, "linear"),
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ffn_dim": (8,)}, r"ffn_dim = \[8\], expected 2 options"),
        ({"heads": (1, 1, 1)}, r"heads = \[1, 1, 1\], expected 2"),
        ({"attention": ("softmax",)}, r"attention = \['softmax'\], expected 2"),
        ({"layers": 0, "ffn_dim": ()}, r"ffn_dim = \[\], expected 0"),
        ({"layers": "two"}, "expected one integer"),
        ({"head_dim": None}, "no gene 'head_dim'"),
    ],
)
@pytest.mark.parametrize("layers", [transformer_layers, image_layers])
def test_malformed_architectures_are_explained(
    change: Mapping[str, Any], said: str, layers: Callable[[Architecture], Any]
) -> None:
    genes = {name: gene for name, gene in {**GENES, **change}.items() if gene is not None}
    with pytest.raises(ArchitectureError, match=said):
        layers(Architecture(genes))
