"""A translation network as what a take-over sorts and leaves layers out of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from nas_core.models.elastic import Axis
from nas_core.models.translation import TranslationConfig, TranslationNet
from nas_core.models.translation.elastic import TRANSLATION_ELASTIC
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.elastic.sorting import sort_axes
from nas_core.supernet.elastic.translation_space import SideSizes, auto_space
from tests.models.translation.tiny import EMBEDDINGS, VOCAB, close, sentences

ENCODER, DECODER = SideSizes(3, 24, 16, 6), SideSizes(3, 16, 24, 4)
AROUND = auto_space("around", ENCODER, DECODER, 4)
SOURCE, TARGET = sentences(7, 4, left=True), sentences(6, 6, seed=1)


def build(space: SearchSpace = AROUND, **config: Any) -> TranslationNet:
    torch.manual_seed(5)
    net = TranslationNet(space, VOCAB, VOCAB, TranslationConfig(**{"positions": "learned", **config}))
    with torch.no_grad():  # biases and norms start as constants, which would hide mistakes
        for parameter in net.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return net.eval()


def shuffled(axes: Sequence[Axis]) -> dict[str, torch.Tensor]:
    stream = torch.Generator().manual_seed(7)
    return {axis.name: torch.rand(axis.size, generator=stream) for axis in axes}


def output(net: TranslationNet, architecture: Architecture) -> torch.Tensor:
    with torch.no_grad():
        return net(net.select(architecture), SOURCE, TARGET)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("embeddings", EMBEDDINGS)
@pytest.mark.parametrize("attention", [("softmax",), ("softmax", "linear")])
def test_any_order_computes_the_same(embeddings: str, norm_first: bool, attention: tuple[str, ...]) -> None:
    sides = (DECODER, DECODER) if embeddings == "all" else (ENCODER, DECODER)
    space = auto_space("around", *sides, 4, attention)
    net = build(space, norm_first=norm_first, **EMBEDDINGS[embeddings])
    axes = TRANSLATION_ELASTIC.axes(net)
    channels = [axis.name for axis in axes if "channels" in axis.name]
    assert channels == (["channels"] if embeddings == "all" else ["encoder.channels", "decoder.channels"])
    every = [space.largest(), *(linear for linear in [_all_linear(space)] if len(attention) > 1)]
    before = [output(net, architecture) for architecture in every]
    state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    sort_axes(net, axes, shuffled(axes))
    for architecture, expected in zip(every, before, strict=True):
        close(output(net, architecture), expected, 1e-4)
    assert all(not torch.equal(net.state_dict()[name], state[name]) for name in state if name != "reference_widths")


def _all_linear(space: SearchSpace) -> Architecture:
    genes = space.largest().to_dict()
    return Architecture(
        {name: ["linear"] * len(value) if name.endswith("attention") else value for name, value in genes.items()}
    )


def test_layers_are_left_out_by_their_index() -> None:
    net = build()
    largest = net.select(AROUND.largest())
    assert TRANSLATION_ELASTIC.sides(net) == {"encoder": 3, "decoder": 3}
    kept = TRANSLATION_ELASTIC.select_layers(net, largest, {"encoder": (2, 0), "decoder": (1,)})
    TRANSLATION_ELASTIC.set_order(net, {"encoder": (0, 2, 1), "decoder": (1, 0, 2)})
    genes = AROUND.largest().to_dict()
    shallow = {"encoder.layers": 2, "decoder.layers": 1}
    cut = {n: v[: shallow[f"{n.split('.')[0]}.layers"]] for n, v in genes.items() if isinstance(v, list)}
    architecture = AROUND.validate(Architecture({**genes, **cut, **shallow}))
    assert kept.architecture == architecture
    with torch.no_grad():
        close(net(kept, SOURCE, TARGET), output(net, architecture))
        full = TRANSLATION_ELASTIC.select_layers(net, largest, {})
        close(net(full, SOURCE, TARGET), output(net, AROUND.largest()))
