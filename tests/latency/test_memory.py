"""Memory and decoding caches: formulas against measurements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nas_core.errors import ConfigError
from nas_core.models import kind_of
from nas_core.models.workload import OnePassWorkload
from nas_core.space import SearchSpace, translation_space
from nas_core.space.bert import bert_space
from nas_core.space.image import image_space
from nas_core.space.language import language_space
from nas_core.space.masked_lm import masked_lm_space
from nas_core.space.mformer import with_attention
from tests.latency.memory import measure_memory

TOLERANCE, LIVE = 0.05, 0.2
"""Relative errors of the formulas: of everything, and of everything but the weights."""
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
KINDS = ("softmax", "linear")
PLACED = {kind: (kind,) for kind in KINDS} | {"mixed": KINDS}
"""Attention of language models: one kind in all layers, or one of several in each."""
SIZES: dict[str, Any] = {
    "layers": (1, 2, 3),
    "embed_dims": (48, 64),
    "ffn_dims": (64, 256),
    "heads": (1, 2, 4),
    "head_dim": 16,
}
LANGUAGE = {name: language_space(name, **SIZES, context_length=700, attention=kinds) for name, kinds in PLACED.items()}
MASKED = {name: masked_lm_space(name, **SIZES, sequence_length=40, attention=kinds) for name, kinds in PLACED.items()}
SHAPED = bert_space(
    "shaped", layers=(1, 2, 3), hidden_dims=(16, 48, 96), heads=(4, 2), ffn_dims=(64, 256), sequence_length=40,
    outer_dim=128,
)  # fmt: skip
EQUAL = bert_space("equal", layers=(3,), hidden_dims=(48, 64), heads=(4, 2), ffn_ratios=(1.5, 4.0), sequence_length=40)
WORDS = {"source_vocab": 200, "target_vocab": 200}


def close(space: SearchSpace, settings: dict[str, Any], seed: int) -> None:
    kind, architecture = kind_of(space), space.sample(np.random.default_rng(seed))
    config = kind.config(settings)
    measured = measure_memory(kind.workload(space, architecture, config))
    live, formula_mb = measured.memory_mb - measured.weights_mb, 4e-6 * kind.activation_numel(architecture, config)
    assert abs(formula_mb - live) <= max(LIVE * live, 0.03), (formula_mb, live)
    assert kind.memory_mb(architecture, config) == pytest.approx(measured.memory_mb, rel=TOLERANCE)


@pytest.mark.parametrize(
    ("space", "settings"),
    [
        (TRANSLATION, {**WORDS, "source_length": 20, "target_length": 12, "beam": 3}),
        (TRANSLATION, {**WORDS, "source_length": 6, "target_length": 40, "beam": 2}),
        (LINEAR, {**WORDS, "source_length": 20, "target_length": 12, "beam": 3}),
        (IMAGE, {}),
        (IMAGE, {"batch": 8}),
        (SHAPED, {"vocab": 100, "batch": 4, "classes": 3}),
        (SHAPED, {"vocab": 2000}),
        (EQUAL, {"vocab": 200, "batch": 2}),
    ],
)
def test_formulas_are_close_to_a_measured_pass(space: SearchSpace, settings: dict[str, Any]) -> None:
    for seed in range(2):
        close(space, settings, seed)


@pytest.mark.parametrize("attention", PLACED)
@pytest.mark.parametrize(
    ("spaces", "settings"),
    [
        (LANGUAGE, {"vocab": 500, "prompt_length": 20, "new_tokens": 40, "batch": 3}),
        (LANGUAGE, {"vocab": 200, "prompt_length": 150, "new_tokens": 4, "batch": 2}),
        (LANGUAGE, {"vocab": 9000, "prompt_length": 1, "new_tokens": 3, "batch": 4}),
        (MASKED, {"vocab": 200, "batch": 2}),
        (MASKED, {"vocab": 2000, "batch": 4}),
        (MASKED, {"vocab": 200, "length": 100, "classes": 3}),
    ],
)
def test_language_models_with_each_kind_of_attention(
    spaces: dict[str, SearchSpace], settings: dict[str, Any], attention: str
) -> None:
    for seed in range(2):
        close(spaces[attention], settings, seed)


@pytest.mark.parametrize("length", [289])
@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_long_sequences(kind: str, length: int) -> None:
    """Linear attention works in blocks there; formulas may be off by a tenth."""
    sizes: dict[str, Any] = {"layers": (2,), "embed_dims": (48,), "ffn_dims": (64,), "heads": (4,), "head_dim": 16}
    plain = translation_space(
        "long", embed_dims=(64,), ffn_dims=(96,), heads=(4,), encoder_layers=(3,), decoder_layers=(2,), qkv_dim=64
    )
    translation = with_attention(plain, "long", (kind,), (kind,), (kind,))
    masked = masked_lm_space("long", **sizes, sequence_length=length, attention=(kind,))
    language = language_space("long", **sizes, context_length=length + 5, attention=(kind,))
    side = 4 * round(length**0.5)
    image = image_space(
        "long", **{**sizes, "heads": (2,)}, image_size=side, patch_size=4, attention=(kind,), relative_clip=0
    )
    words = {"source_vocab": 60, "target_vocab": 60, "source_length": length, "target_length": 5}
    for space, settings in (
        (translation, {**words, "beam": 1}),
        (translation, {**words, "beam": 4}),
        (masked, {"vocab": 50}),
        (language, {"vocab": 50, "prompt_length": length, "new_tokens": 3}),
        (image, {"batch": 1}),
        (image, {"batch": 3}),
    ):
        network, architecture = kind_of(space), space.largest()
        config = network.config(settings)
        measured = measure_memory(network.workload(space, architecture, config)).memory_mb
        assert network.memory_mb(architecture, config) == pytest.approx(measured, rel=0.1)


@pytest.mark.parametrize(
    ("space", "settings"),
    [
        (space, {**WORDS, "source_length": 9, "target_length": steps, "beam": 3})
        for space in (TRANSLATION, LINEAR)
        for steps in (1, 7, 40)
    ]
    + [
        (LANGUAGE[name], {"vocab": 30, "prompt_length": prompt, "new_tokens": new, "batch": 2})
        for name in PLACED
        for prompt, new in ((1, 1), (5, 40), (30, 1))
    ],
)
def test_the_cache_is_that_of_the_formula(space: SearchSpace, settings: dict[str, Any]) -> None:
    kind, rng = kind_of(space), np.random.default_rng(0)
    config = kind.config(settings)
    for architecture in (space.smallest(), space.largest(), space.sample(rng), space.sample(rng)):
        workload = kind.workload(space, architecture, config)
        assert measure_memory(workload).cache_mb == pytest.approx(kind.cache_mb(architecture, config), rel=1e-9)


@pytest.mark.parametrize(
    ("space", "settings"),
    [
        (LANGUAGE["mixed"], {"vocab": 30, "prompt_length": 10, "new_tokens": 5}),
        (LANGUAGE["mixed"], {"vocab": 30, "prompt_length": 255, "new_tokens": 3}),
        (LANGUAGE["mixed"], {"vocab": 30, "prompt_length": 600, "new_tokens": 3}),
        (MASKED["mixed"], {"vocab": 30}),
        (MASKED["mixed"], {"vocab": 30, "length": 50, "classes": 7}),
    ],
)
def test_weights_are_those_of_the_network_after_a_pass(space: SearchSpace, settings: dict[str, Any]) -> None:
    """Tables of sinusoids have grown then."""
    kind = kind_of(space)
    config = kind.config(settings)
    for architecture in (space.smallest(), space.largest()):
        workload = kind.workload(space, architecture, config)
        measure_memory(workload)
        tensors = [tensor for net in workload.modules for tensor in (*net.parameters(), *net.buffers())]
        assert kind.weights(architecture, config) == sum(tensor.numel() for tensor in tensors if tensor.ndim)


@pytest.mark.parametrize("space", [IMAGE, MASKED["softmax"]], ids=["image", "masked_lm"])
def test_a_kind_that_decodes_nothing_has_no_cache(space: SearchSpace) -> None:
    kind = kind_of(space)
    assert measure_memory(kind.workload(space, space.smallest(), kind.config({}))).cache_mb is None
    with pytest.raises(ConfigError, match="have no decoding cache"):
        kind.cache_mb(space.smallest(), kind.config({}))


def test_freed_tensors_are_not_counted() -> None:
    class Chain(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(5):
                x = x + 1  # one is made while one is read
            return x

    memory = measure_memory(OnePassWorkload(Chain(), [torch.zeros(250_000)]))
    assert (memory.memory_mb, memory.weights_mb) == (pytest.approx(2.0), 0.0)
