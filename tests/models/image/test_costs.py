"""Parameters and FLOPs of image architectures: the tables of mFormer, the static network, and a counted forward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from nas_core.layers.attention import KINDS
from nas_core.models.image.costs import flops, parameters
from nas_core.models.image.net import VisionConfig, VisionNet
from nas_core.space import Architecture, get_space
from nas_core.space.image import image_architecture, image_space, static_image_space


def changed(name: str, **genes: Any) -> Architecture:
    return Architecture({**image_architecture(name), **genes})


def transformer_star(kind: str) -> Architecture:
    """Transformer*: 14 layers of width 384; costs depend on the printed sums of FFN sizes and heads alone."""
    ffn = [224 * units for units in (7, 7, 7, 7, 7, 6, 6, 6, 6, 6, 6, 6, 3, 3)]
    heads = [7] * 12 + [6] * 2
    assert (sum(ffn), sum(heads)) == (18_592, 96)
    return changed("mformer_like_cifar10", layers=14, ffn_dim=ffn, heads=heads, attention=[kind] * 14)


TABLES = {
    "Transformer*": (transformer_star("softmax"), 24.26, 10.90),
    "Transformer* all linear": (transformer_star("linear"), 24.14, 9.48),
    "cosFormer*": (image_architecture("cosformer_star_cifar10"), 24.31, 9.55),
    "cosFormer* all softmax": (image_architecture("cosformer_star_softmax_cifar10"), 24.42, 10.66),
    "mFormer": (image_architecture("mformer_like_cifar10"), 19.31, 8.39),
    "mFormer all linear": (image_architecture("mformer_like_linear_cifar10"), 19.23, 7.55),
    "mFormer all softmax": (image_architecture("mformer_like_softmax_cifar10"), 19.33, 8.67),
    "vanilla Transformer": (image_architecture("vanilla_softmax_cifar10"), 19.31, 8.07),
    "vanilla cosFormer": (image_architecture("vanilla_linear_cifar10"), 19.34, 7.60),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_4_and_5_of_the_paper(name: str) -> None:
    architecture, printed_m, printed_g = TABLES[name]
    assert parameters(architecture, accounting="paper") / 1e6 == pytest.approx(printed_m, abs=0.0201)
    assert flops(architecture, accounting="paper") / 1e9 == pytest.approx(printed_g, abs=0.0201)


def test_at_197_tokens_a_linear_core_costs_two_thirds_of_softmax() -> None:
    softmax, linear = (changed(f"vanilla_{kind}_cifar10") for kind in ("softmax", "linear"))
    base = flops(linear, accounting="paper") - flops(softmax, accounting="paper")
    assert base < 0
    gap = flops(softmax) - flops(linear)
    assert (-base - gap) / -base == pytest.approx(128 / 197, abs=0.01)


TINY = image_space(
    "tiny",
    layers=(1, 2, 3),
    embed_dims=(8, 12),
    ffn_dims=(8, 16),
    heads=(1, 2, 3),
    head_dim=4,
    image_size=16,
    patch_size=4,
    attention=KINDS.names(),
    relative_clip=3,
)
ARCHITECTURES = [TINY.smallest(), TINY.largest(), *(TINY.sample(np.random.default_rng(seed)) for seed in range(8))]


@pytest.mark.parametrize("options", [{}, {"classes": 0}, {"class_token": False, "channels": 1}])
def test_parameters_equal_those_of_the_static_network(options: dict[str, Any]) -> None:
    for architecture in ARCHITECTURES:
        net = VisionNet(static_image_space(architecture), VisionConfig(**options))
        assert parameters(architecture, **options) == sum(p.numel() for p in net.parameters())
    larger = VisionNet(static_image_space(TINY.largest()), VisionConfig(image_size=(24, 24)))
    assert parameters(TINY.largest(), image_size=24) == sum(p.numel() for p in larger.parameters())
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
