"""Memory by formula and measured at lengths of hundreds of positions, where linear attention works in blocks."""

from __future__ import annotations

from typing import Any

import pytest

from nas_core.latency.memory import measure_memory
from nas_core.models import kind_of
from nas_core.space import SearchSpace, image_space, language_space, translation_space
from nas_core.space.masked_lm import masked_lm_space
from nas_core.space.mformer import with_attention

TOLERANCE = 0.1
"""How far from what is measured the pages say that formulas may be."""
WORDS = {"source_vocab": 60, "target_vocab": 60}
SIZES: dict[str, Any] = {"layers": (2,), "embed_dims": (48,), "ffn_dims": (64,), "heads": (4,), "head_dim": 16}


def translation(kind: str) -> SearchSpace:
    plain = translation_space(
        "long",
        embed_dims=(64,),
        ffn_dims=(96,),
        heads=(4,),
        encoder_layers=(3,),
        decoder_layers=(2,),
        qkv_dim=64,
    )
    return with_attention(plain, "long", (kind,), (kind,), (kind,))


def near(space: SearchSpace, settings: dict[str, Any]) -> None:
    kind, architecture = kind_of(space), space.largest()
    config = kind.config(settings)
    measured = measure_memory(kind.workload(space, architecture, config)).memory_mb
    assert kind.memory_mb(architecture, config) == pytest.approx(measured, rel=TOLERANCE)


@pytest.mark.parametrize("length", [300, 1000])
@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_long_sequences(kind: str, length: int) -> None:
    for beam in (1, 4):
        near(translation(kind), {**WORDS, "source_length": length, "target_length": 5, "beam": beam})
    near(masked_lm_space("long", **SIZES, sequence_length=length, attention=(kind,)), {"vocab": 50})
    near(
        language_space("long", **SIZES, context_length=length + 5, attention=(kind,)),
        {"vocab": 50, "prompt_length": length, "new_tokens": 3},
    )


@pytest.mark.parametrize("side", [17, 32])
@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_many_patches(kind: str, side: int) -> None:
    """289 and 1,024 of them."""
    space = image_space(
        "long",
        layers=(2,),
        embed_dims=(48,),
        ffn_dims=(64,),
        heads=(2,),
        head_dim=16,
        image_size=4 * side,
        patch_size=4,
        attention=(kind,),
        relative_clip=0,
    )
    for batch in (1, 3):
        near(space, {"batch": batch})
