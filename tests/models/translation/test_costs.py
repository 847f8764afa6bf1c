"""Parameters and FLOPs by formula, against HAT's published figures and against counting."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.parts.published import RELEASED, absent, released
from nas_core.models import params_m
from nas_core.models.translation import TranslationConfig, TranslationNet
from nas_core.models.translation.costs import Lengths, flops, parameters
from nas_core.space import Architecture, SearchSpace, get_space, translation_space

SPACE = translation_space(
    "tiny",
    embed_dims=(16, 12),
    ffn_dims=(24, 16, 8),
    heads=(4, 2),
    encoder_layers=(3, 2, 1),
    decoder_layers=(3, 2, 1),
    qkv_dim=8,
)
SOURCE_VOCAB, VOCAB = 23, 19
ARCHITECTURES = [SPACE.smallest(), SPACE.largest(), *(SPACE.sample(np.random.default_rng(s)) for s in range(5))]
EMBEDDINGS = ({}, {"share_decoder_embeddings": True}, {"share_all_embeddings": True})


needs_released = pytest.mark.skipif(bool(absent(RELEASED)), reason=absent(RELEASED) or "")


@needs_released
def test_parameters_of_the_released_architectures_to_the_printed_digit() -> None:
    wrong = {
        row["name"]: (params_m(architecture), row["params_m"])
        for row, architecture in released()
        if f"{params_m(architecture):.2f}" != f"{row['params_m']:.2f}"
    }
    assert wrong == {} and len(released()) == 44


@needs_released
def test_flops_of_the_released_architectures_within_two_percent() -> None:
    wrong = {}
    for row, architecture in released():
        length = 23 if row["task"].startswith("iwslt") else 30
        counted = flops(architecture, Lengths(length, length)) / 1e9
        if abs(counted / row["flops_g"] - 1) > 0.02:
            wrong[row["name"]] = (counted, row["flops_g"])
    assert wrong == {}


@pytest.mark.parametrize(
    ("name", "smallest", "largest"),
    [("hat_wmt14_en_de", 15_771_136, 70_900_992), ("hat_iwslt14_de_en", 12_097_536, 55_160_064)],
)
def test_ends_of_hats_spaces(name: str, smallest: int, largest: int) -> None:
    space = get_space(name)
    assert parameters(space.smallest()) == smallest
    assert parameters(space.largest()) == largest
    assert parameters(space.largest(), 32768, 32768, share_all_embeddings=True) == largest + 20_971_520
    assert params_m(space.largest()) == largest / 1e6


def build(architecture: Architecture, **config: bool) -> TranslationNet:
    source = VOCAB if config.get("share_all_embeddings") else SOURCE_VOCAB
    return TranslationNet(SearchSpace.of(architecture, like=SPACE), source, VOCAB, TranslationConfig(**config))


def count(net: nn.Module, embeddings: bool) -> int:
    tables = ("embedding.weight", "source_embedding.weight", "target_embedding.weight", "output.weight")
    return sum(p.numel() for name, p in net.named_parameters() if embeddings or name not in tables)


@pytest.mark.parametrize("norm_first", [False, True])
def test_parameters_equal_those_of_the_static_network(norm_first: bool) -> None:
    for architecture in ARCHITECTURES:
        for shared in EMBEDDINGS:
            net = build(architecture, norm_first=norm_first, **shared)
            source = VOCAB if "share_all_embeddings" in shared else SOURCE_VOCAB
            counted = parameters(architecture, source, VOCAB, norm_first=norm_first, **shared)
            assert counted == count(net, embeddings=True), (architecture, shared)
            assert parameters(architecture, norm_first=norm_first, **shared) == count(net, embeddings=False)


@pytest.mark.parametrize("lengths", [Lengths(7, 5)])
@torch.no_grad()
def test_flops_equal_those_of_a_real_forward(lengths: Lengths) -> None:
    for architecture in ARCHITECTURES:
        net = build(architecture)
        subnet = net.select(architecture)
        tokens = [torch.full((1, length), 3) for length in (lengths.source, lengths.target)]
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            net(subnet, *tokens)
        assert flops(architecture, lengths, VOCAB) == counter.get_total_flops(), architecture
        output = 2 * lengths.target * architecture.number("decoder.embed_dim") * VOCAB
        assert flops(architecture, lengths) == counter.get_total_flops() - output
