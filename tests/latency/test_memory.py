"""Memory and decoding caches: what formulas say beside what passes take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nas_core.errors import ConfigError
from nas_core.latency.memory import MeasuredMemory, measure_memory
from nas_core.layers.attention.kinds import KINDS as ATTENTION
from nas_core.models import kind_of
from nas_core.models.memory import memory_numbers, state_numbers
from nas_core.models.workload import OnePassWorkload
from nas_core.space import SearchSpace, get_space, image_space, translation_space
from nas_core.space.mformer import with_attention

TOLERANCE, LIVE = 0.05, 0.2
"""How far the formulas may be from what is measured: of all, and of what is held beside the weights."""
TRANSLATION = translation_space(
    "small",
    embed_dims=(64, 48),
    ffn_dims=(128, 64),
    heads=(4, 2),
    encoder_layers=(3, 1),
    decoder_layers=(3, 1),
    qkv_dim=64,
)
LINEAR = with_attention(TRANSLATION, "mixed")
IMAGE = image_space(
    "small",
    layers=(1, 2, 3),
    embed_dims=(48, 64),
    ffn_dims=(64, 128),
    heads=(1, 2, 3),
    head_dim=16,
    image_size=32,
    patch_size=4,
    attention=("softmax", "linear"),
    relative_clip=3,
)
WORDS = {"source_vocab": 200, "target_vocab": 200}


def both(space: SearchSpace, seed: int, settings: dict[str, Any]) -> tuple[MeasuredMemory, float, float]:
    """Measured; memory and live numbers on paper, in MB."""
    kind, architecture = kind_of(space), space.sample(np.random.default_rng(seed))
    config = kind.config(settings)
    measured = measure_memory(kind.workload(space, architecture, config))
    return measured, kind.memory_mb(architecture, config), 4e-6 * kind.live(architecture, config)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("space", "settings"),
    [
        (TRANSLATION, {**WORDS, "source_length": 20, "target_length": 12, "beam": 3}),
        (TRANSLATION, {**WORDS, "source_length": 6, "target_length": 40, "beam": 2}),
        (LINEAR, {**WORDS, "source_length": 20, "target_length": 12, "beam": 3}),
        (IMAGE, {}),
        (IMAGE, {"batch": 8}),
    ],
)
def test_formulas_are_near_what_a_pass_takes(space: SearchSpace, settings: dict[str, Any], seed: int) -> None:
    measured, memory_mb, live_mb = both(space, seed, settings)
    live = measured.memory_mb - measured.weights_mb
    assert abs(live_mb - live) <= max(LIVE * live, 0.03), (live_mb, live)
    assert memory_mb == pytest.approx(measured.memory_mb, rel=TOLERANCE)


@pytest.mark.parametrize("space", [TRANSLATION, LINEAR], ids=["softmax", "mixed"])
@pytest.mark.parametrize("steps", [1, 7, 40])
def test_the_cache_is_what_the_formula_says(space: SearchSpace, steps: int) -> None:
    kind, rng = kind_of(space), np.random.default_rng(steps)
    config = kind.config({**WORDS, "source_length": 9, "target_length": steps, "beam": 3})
    for architecture in (space.smallest(), space.largest(), space.sample(rng), space.sample(rng)):
        measured = measure_memory(kind.workload(space, architecture, config)).cache_mb
        assert measured == pytest.approx(kind.cache_mb(architecture, config), rel=1e-9)


def test_only_softmax_attention_keeps_more_as_it_decodes() -> None:
    kept = {name: [state_numbers(kind, 2, 8, length, 1) for length in (50, 500)] for name, kind in ATTENTION.items()}
    assert kept["softmax"] == [2 * 2 * 8 * 50, 2 * 2 * 8 * 500]
    assert kept["linear"][0] == kept["linear"][1] and kept["local"][0] == kept["local"][1]
    assert memory_numbers(ATTENTION.get("softmax"), 2, 8, 30, 4) == 4 * 2 * 2 * 8 * 30


def test_a_kind_that_decodes_nothing_has_no_cache() -> None:
    kind = kind_of(IMAGE)
    assert measure_memory(kind.workload(IMAGE, IMAGE.smallest(), kind.config({}))).cache_mb is None
    with pytest.raises(ConfigError, match="image networks decode nothing and have no cache"):
        kind.cache_mb(IMAGE.smallest(), kind.config({}))


def test_what_is_freed_is_no_longer_counted() -> None:
    class Chain(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(5):
                x = x + 1  # one is made while one is read
            return x

    taken = measure_memory(OnePassWorkload(Chain(), [torch.zeros(250_000)]))
    assert (taken.memory_mb, taken.weights_mb) == (pytest.approx(2.0), 0.0)


def test_weights_of_large_spaces_decide(capsys: pytest.CaptureFixture[str]) -> None:
    space = get_space("hat_wmt14_en_de")
    kind = kind_of(space)
    config = kind.config({})
    small, large = (kind.memory_mb(end, config) for end in (space.smallest(), space.largest()))
    assert 4 * kind.params_m(space.smallest()) < small < large
    assert kind.memory_mb(space.largest(), kind.config({"target_length": 300})) > large
