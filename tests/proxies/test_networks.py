"""Proxies of networks that the project builds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nas_core.models import kind_of
from nas_core.models.translation.costs import Lengths, flops
from nas_core.proxies.networks import NasBench201Proxies, SpaceProxies, proxy_loss
from nas_core.search import RandomConfig, RandomSearch, search
from nas_core.space import SearchSpace, translation_space
from nas_core.space.image import image_space
from nas_core.space.language import language_space
from nas_core.space.masked_lm import masked_lm_space

SIZES: dict[str, Any] = {"layers": (1, 2), "embed_dims": (8, 12), "ffn_dims": (8, 16), "heads": (1, 2), "head_dim": 4}
IMAGES = image_space("images", **SIZES, image_size=16, patch_size=4, attention=("softmax",), relative_clip=3)
WORDS = {"source_vocab": 23, "target_vocab": 19, "source_length": 7, "target_length": 5}
SENTENCES = translation_space(
    "sentences", embed_dims=(12, 8), ffn_dims=(16, 8), heads=(2, 1), encoder_layers=(2, 1), decoder_layers=(2, 1),
    qkv_dim=8,
)  # fmt: skip
SPACES: dict[str, tuple[SearchSpace, dict[str, Any]]] = {
    "image": (IMAGES, {}),
    "translation": (SENTENCES, WORDS),
    "masked_lm": (masked_lm_space("masked", **SIZES, sequence_length=9), {"vocab": 23}),
    "language": (
        language_space("words", **SIZES, context_length=20, attention=("softmax", "linear")),
        {"vocab": 19, "prompt_length": 5, "new_tokens": 4},
    ),
}


@pytest.mark.parametrize("name", SPACES)
def test_every_kind_of_network_is_scored(name: str) -> None:
    space, workload = SPACES[name]
    scores = SpaceProxies(space, workload=workload, batch=3)
    small, large = scores(space.smallest()), scores(space.largest())
    assert kind_of(space).name == name and scores.settings["kind"] == name and list(small) == scores.proxies
    assert all(np.isfinite([*small.values(), *large.values()])) and scores(space.largest()) == large
    for proxy in ("params", "flops", "synflow", "nwot"):
        assert small[proxy] < large[proxy]
    stream = torch.get_rng_state()
    SpaceProxies(space, ["params"], workload, batch=2, seed=9)(space.smallest())
    assert torch.get_rng_state().equal(stream)


def test_counts_equal_the_formulas() -> None:
    rng, kind = np.random.default_rng(0), kind_of(IMAGES)
    scores = SpaceProxies(IMAGES, ["params", "flops"], batch=2)
    for architecture in {IMAGES.largest(), IMAGES.sample(rng), IMAGES.sample(rng)}:
        scored = scores(architecture)
        assert scored["params"] == round(1e6 * kind.params_m(architecture))
        assert scored["flops"] == round(1e9 * kind.flops_g(architecture))


def test_counts_of_translation_have_the_output_projection() -> None:
    largest = SENTENCES.largest()
    scored = SpaceProxies(SENTENCES, ["params", "flops"], WORDS, batch=2)(largest)
    assert scored["flops"] == flops(largest, Lengths(7, 5), target_vocab=19)
    assert scored["params"] > 1e6 * kind_of(SENTENCES).params_m(largest)


def test_a_search_that_trains_nothing() -> None:
    scores = SpaceProxies(IMAGES, ["nwot", "params"], batch=4)
    config = RandomConfig(evaluations=6, batch=3)
    result = search(RandomSearch(IMAGES, config=config, seed=1), proxy_loss(scores, "nwot"), progress=False)
    best = result.winner
    assert best.metrics["loss"] == -best.metrics["nwot"] == min(row["loss"] for row in result.evaluated.values())


def test_cells_of_nasbench201() -> None:
    scores = NasBench201Proxies(channels=4, cells=1, batch=3)
    conv, none = scores([3, 1, 3, 1, 3, 3]), scores([0] * 6)
    assert all(np.isfinite([*conv.values(), *none.values()]))
    assert all(none[proxy] < conv[proxy] for proxy in conv), (
        "a cell that lets nothing through is the last by every proxy"
    )
    text = "|nor_conv_3x3~0|+|skip_connect~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|"
    assert scores(text) == conv and scores.settings["space"] == "nasbench201"
    images = NasBench201Proxies(["snip"], torch.randn(2, 3, 8, 8), torch.tensor([1, 2]), channels=2, cells=1)
    assert list(images(text)) == ["snip"] and (images.settings["batch"], scores.settings["batch"]) == (2, 3)


def test_cells_are_drawn_once_each() -> None:
    cells = NasBench201Proxies.drawn(50, 3)
    assert len(set(cells)) == 50 and NasBench201Proxies.drawn(20, 3) == cells[:20]
    assert NasBench201Proxies.drawn(20, 4) != cells[:20]
