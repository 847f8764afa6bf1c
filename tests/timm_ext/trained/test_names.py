"""Which of timm's vision transformers are taken over, by name, and why others are not."""

from __future__ import annotations

from typing import Any

import pytest
import timm
import torch

from nas_core.errors import CheckpointError
from timm_ext import elastic
from timm_ext.trained.support import unsupported

REASONS = (
    "a norm of each patch", "norms by RmsNorm", "gated hidden units", "a norm or a gate within attention",
    "a norm of hidden units", "attention as pooling", "layers of", "attention by DiffAttention",
    "not exactly one norm after the layers", "patches that are not square, or do not divide the image",
    "it is a VisionTransformerDistilled, with a distillation token",
)  # fmt: skip
"""What is said of the vision transformers of timm that have no elastic form."""
PUBLIC = {
    "vit_tiny_patch16_224": "",
    "vit_small_patch16_224": "",
    "vit_base_patch16_224": "",
    "vit_base_patch16_224_miil": "",
    "vit_base_patch32_clip_224": "",
    "vit_base_patch16_clip_224": "",
    "vit_base_patch16_clip_quickgelu_224": "",
    "vit_base_patch16_siglip_gap_224": "",
    "vit_base_patch16_siglip_224": "attention as pooling",
    "vit_small_patch14_dinov2": "",
    "vit_small_patch14_reg4_dinov2": "",
    "vit_giant_patch14_dinov2": "gated hidden units",
    "vit_medium_patch16_gap_240": "",
    "vit_medium_patch16_reg4_gap_256": "",
    "vit_base_patch16_rpn_224": "norms by|layers of ResPostBlock|RmsNorm",
    "vit_base_patch16_xp_224": "RmsNorm|layers of",
    "vit_small_patch16_36x1_224": "",
    "vit_small_patch16_18x2_224": "layers of ParallelThingsBlock",
    "deit_tiny_patch16_224": "",
    "deit_small_patch16_224": "",
    "deit3_small_patch16_224": "",
    "deit_tiny_distilled_patch16_224": "distillation token",
    "beit_base_patch16_224": "it is a Beit, with relative position biases",
    "eva02_tiny_patch14_224": "it is a Eva, with rotary positions",
    "vit_relpos_small_patch16_224": "relative position biases",
    "vit_tiny_r_s16_p8_224": "patches by",
    "flexivit_small": "",
    "resnet18": "it is a ResNet",
    "vit_cifar10_small": "it is a VisionModel",
}
"""Names, and what the refusal says; empty: taken over."""


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names(name: str) -> None:
    with torch.device("meta"):
        model = timm.create_model(name)
    found = unsupported(model)
    assert bool(found) == bool(PUBLIC[name]), found
    if found:
        assert any(part in "; ".join(found) for part in PUBLIC[name].split("|")), found


def test_every_name() -> None:
    """Each is taken over, or refused for one of the reasons that are known."""
    taken, refused = [], {}
    for name in [one for module in ("vision_transformer", "deit") for one in timm.list_models(module=module)]:
        with torch.device("meta"):
            model = timm.create_model(name, depth=1)
        if found := unsupported(model):
            refused[name] = found
        else:
            taken.append(name)
    odd = {name: found for name, found in refused.items() if not all(one.startswith(REASONS) for one in found)}
    assert not odd
    assert len(taken) > 100 and len(taken) > 1.5 * len(refused)


@pytest.mark.parametrize(
    "name", ["vit_tiny_patch16_224", "deit3_small_patch16_224", "vit_small_patch14_reg4_dinov2",
             "vit_base_patch32_clip_quickgelu_224", "vit_base_patch16_siglip_gap_224"]
)  # fmt: skip
def test_a_public_architecture_with_random_weights(name: str) -> None:
    size = 56 if "14" in name else 64
    torch.manual_seed(0)
    model: Any = timm.create_model(name, img_size=size, num_classes=5, depth=2)
    supernet, images = elastic(model), torch.randn(1, 3, size, size)
    with torch.no_grad():
        expected = model.eval()(images)
        assert float((supernet(images) - expected).abs().max() / expected.abs().max()) < 1e-5


def test_refused_before_the_weights_are_made() -> None:
    with pytest.raises(CheckpointError, match="vit_giant_patch14_dinov2 has no elastic form: gated hidden units"):
        elastic("vit_giant_patch14_dinov2", pretrained=True)
