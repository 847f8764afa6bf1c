"""Parameters and FLOPs of image architectures: those of the static network, and of a counted forward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from nas_core.layers.attention import ATTENTION_KINDS
from nas_core.models.image.costs import flops, parameters
from nas_core.models.image.net import VisionConfig, VisionNet
from nas_core.space import get_space
from nas_core.space.image import image_space, static_image_space

TINY = image_space(
    "tiny",
    layers=(1, 2, 3),
    embed_dims=(8, 12),
    ffn_dims=(8, 16),
    heads=(1, 2, 3),
    head_dim=4,
    image_size=16,
    patch_size=4,
    attention=ATTENTION_KINDS.names(),
    relative_clip=3,
)
ARCHITECTURES = [TINY.smallest(), TINY.largest(), *(TINY.sample(np.random.default_rng(seed)) for seed in range(8))]


@pytest.mark.parametrize("options", [{}, {"classes": 0}, {"class_token": False, "channels": 1}])
def test_parameters_equal_those_of_the_static_network(options: dict[str, Any]) -> None:
    for architecture in ARCHITECTURES:
        net = VisionNet(static_image_space(architecture), VisionConfig(**options))
        assert parameters(architecture, **options) == sum(p.numel() for p in net.parameters())
    ratios = get_space("autoformer_s").smallest()
    assert parameters(ratios) == sum(p.numel() for p in VisionNet(static_image_space(ratios)).parameters())


@torch.no_grad()
def test_flops_equal_those_of_a_real_forward() -> None:
    """Linear attention also multiplies for its denominators: one column more of each head's values."""
    for architecture in ARCHITECTURES:
        net = VisionNet(static_image_space(architecture)).eval()
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            net(net.select(architecture), torch.randn(1, 3, 16, 16))
        kinds, heads = architecture["attention"], architecture.numbers("heads")
        linear = sum(h for kind, h in zip(kinds, heads, strict=True) if kind == "linear")  # type: ignore[arg-type]
        denominators = 2 * 2 * 17 * 2 * 4 * linear
        assert counter.get_total_flops() == flops(architecture) + denominators, architecture
