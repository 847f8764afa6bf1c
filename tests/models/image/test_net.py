"""The image network: subnets against their static networks, kinds of attention, sizes, and wrong input."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nas_core.layers import MoSConfig
from nas_core.layers.attention import ATTENTION_KINDS
from nas_core.models.image.net import VisionConfig, VisionNet
from nas_core.space import Architecture
from nas_core.space.image import image_space

SPACE = image_space(
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
MIXED = Architecture(
    {
        "layers": 2,
        "embed_dim": 8,
        "ffn_dim": (16, 8),
        "heads": (2, 3),
        "attention": ("linear", "softmax"),
        **SPACE.fixed,
    }
)
ARCHITECTURES = {"mixed": MIXED, "softmax": SPACE.largest(), "linear": SPACE.smallest()}
MIXTURES = {
    "none": MoSConfig(),
    "layer": MoSConfig(kind="layer", router_hidden=8),
    "neuron": MoSConfig(kind="neuron", router_hidden=8),
    "three": MoSConfig(kind="neuron", router_hidden=8, experts=3),
}


def build(**config: Any) -> VisionNet:
    torch.manual_seed(5)
    net = VisionNet(SPACE, VisionConfig(classes=5, **config))
    with torch.no_grad():  # biases and norms start as constants, which would hide mistakes
        for parameter in net.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return net


def images(height: int = 16, width: int = 16, count: int = 3) -> Tensor:
    return torch.randn(count, 3, height, width, generator=torch.Generator().manual_seed(2))


def close(got: Tensor, expected: Tensor, what: str = "") -> None:
    torch.testing.assert_close(got, expected, atol=2e-5, rtol=2e-5, msg=lambda m: f"{what} {m}")


def test_what_the_classifier_reads() -> None:
    net = build().eval()
    subnet = net.select(MIXED)
    tokens = net.features(subnet, images())
    assert tokens.shape == (3, 17, 8)
    assert subnet.head is not None
    mean = tokens[:, 1:].mean(1)
    close(net(subnet, images()), mean @ subnet.head.weight.T + subnet.head.bias)
    net.set_classifier(0, "token")
    close(net(net.select(MIXED), images()), tokens[:, 0])
    net.set_classifier(7, "")
    assert net(net.select(MIXED), images()).shape == (3, 17, 7)


def test_other_image_sizes() -> None:
    net = build().eval()
    architecture = MIXED
    before = net(net.select(architecture), images(24, 12))
    assert before.shape == (3, 5)
    stored = net.state_dict()
    net.set_image_size((24, 12))
    assert net.positions.shape == (1 + 6 * 3, 12)
    close(net(net.select(architecture), images(24, 12)), before)
    other = VisionNet(SPACE, VisionConfig(classes=5, image_size=(32, 32))).eval()
    other.load_state_dict(stored)
    close(
        other(other.select(architecture), images(32, 32)), build().eval()(build().select(architecture), images(32, 32))
    )


def test_checkpointing_gives_the_same_gradients() -> None:
    gradients = []
    for checkpointing in (False, True):
        net = build(dropout=0.2, drop_path=0.5)
        net.checkpointing = checkpointing
        torch.manual_seed(3)
        net(net.select(SPACE.largest()), images()).square().sum().backward()
        gradients.append({name: p.grad for name, p in net.named_parameters() if p.grad is not None})
    assert set(gradients[0]) == set(gradients[1])
    for name, gradient in gradients[0].items():
        close(gradients[1][name], gradient, name)
