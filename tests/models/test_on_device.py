"""Networks in every precision and on every device: an update near that of float32 on the CPU, decoding as the whole
sequence, and no synchronisation with the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.layers import MoSConfig
from nas_core.layers.attention import LinearAttention
from nas_core.layers.smoothed_loss import projected_smoothed_loss
from nas_core.models.image import VisionConfig, VisionNet
from nas_core.models.translation import TranslationNet
from nas_core.precision import computing_in, half_type
from nas_core.space import Architecture, translation_space, with_attention
from nas_core.space.image import image_space
from nas_core.space.language import language_space
from nas_core.space.masked_lm import masked_lm_space
from nas_core.supernet.sampling import sandwich
from tests.devices import PRECISIONS, close_in, gradients_close
from tests.host_reads import host_reads, no_host_reads
from tests.models.language import tiny as language
from tests.models.masked_lm import tiny as masked_lm
from tests.models.translation import tiny as translation

ALL = ("softmax", "linear")
# Heads are so wide that few queries have no positive channel: a small denominator is a large gradient.
HAT = translation_space(
    "tiny-heads", embed_dims=(16, 12), ffn_dims=(24, 16, 8), heads=(4, 2), encoder_layers=(3, 2, 1),
    decoder_layers=(3, 2, 1), qkv_dim=64,
)  # fmt: skip
MFORMER = with_attention(HAT, "tiny-mformer", *[("softmax", "linear")] * 3)
IMAGES = image_space(
    "tiny", layers=(1, 2, 3), embed_dims=(16, 24), ffn_dims=(16, 32), heads=(1, 2, 3), head_dim=8, image_size=16,
    patch_size=4, attention=ALL, relative_clip=3,
)  # fmt: skip
LANGUAGE = language_space(
    "wide", layers=(3, 2, 1), embed_dims=(16, 12), ffn_dims=(24, 16, 8), heads=(4, 2), head_dim=16,
    context_length=40, attention=ALL,
)  # fmt: skip
MASKED = masked_lm_space("wide", **{**masked_lm.SIZES, "head_dim": 16}, attention=ALL)


def mixed(space: Any, **genes: object) -> Architecture:
    return Architecture({**space.largest().to_dict(), **genes})


def translation_network(mos: str, space: Any = MFORMER) -> TranslationNet:
    return translation.build(mos, "all", space, linear=LinearAttention(24), norm_first=True)


def translation_loss(net: Any, subnet: Any, source: Tensor, target: Tensor) -> Tensor:
    features = net.decode_features(subnet, target[:, :-1], net.encode(subnet, source)).flatten(0, 1)
    return projected_smoothed_loss(features, subnet.output, target[:, 1:].flatten(), 0.1, translation.PAD)[0] / 4


def image_network(mos: str) -> VisionNet:
    torch.manual_seed(5)
    net = VisionNet(IMAGES, VisionConfig(classes=5, mos=MoSConfig(kind=mos, router_hidden=8)))
    with torch.no_grad():  # biases and norms are initialised to constants, which would hide mistakes
        for parameter in net.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return net


def image_loss(net: Any, subnet: Any, images: Tensor, classes: Tensor) -> Tensor:
    return F.cross_entropy(net(subnet, images.to(net.positions.dtype)).float(), classes) * 64  # against underflow


def language_loss(net: Any, subnet: Any, tokens: Tensor) -> Tensor:
    features = net.features(subnet, tokens[:, :-1]).flatten(0, 1)
    return projected_smoothed_loss(features, subnet.output, tokens[:, 1:].flatten(), 0.1, language.PAD)[0] / 4


def masked_lm_loss(net: Any, subnet: Any, tokens: Tensor) -> Tensor:
    features = net.encode(subnet, tokens)
    logits = net.predict(subnet, features[:, ::2]).float()
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, ::2].flatten(), ignore_index=net.config.padding_idx)
    return loss + net.classify(subnet, features, "topic").float().logsumexp(-1).mean()


class Case(NamedTuple):
    network: Callable[[str], Any]
    architecture: Architecture
    loss: Callable[..., Tensor]
    batch: tuple[Tensor, ...]
    mixtures: tuple[str, ...]


KINDS = ["linear", "softmax", "linear"]
ATTENTION = ("encoder.self_attention", "decoder.self_attention", "decoder.cross_attention")
MIXED = mixed(MFORMER, **{"encoder.embed_dim": 12}, **dict.fromkeys(ATTENTION, KINDS))
PAIRS = translation.sentences(9, 13, 4, left=True), translation.sentences(11, 7, 12, seed=1)
PICTURES = torch.randn(6, 3, 16, 16, generator=torch.Generator().manual_seed(2)), torch.arange(6) % 5
CASES = {
    "translation": Case(translation_network, MIXED, translation_loss, PAIRS, ("none", "neuron")),
    "image": Case(
        image_network, mixed(IMAGES, embed_dim=16, attention=KINDS, heads=[2, 3, 1]), image_loss, PICTURES,
        ("layer",),
    ),
    "language": Case(
        lambda mos: language.build(mos, LANGUAGE, norm_first=True), mixed(LANGUAGE, embed_dim=12, attention=KINDS),
        language_loss, (language.sentences(3, 25),), ("layer",),
    ),
    "masked_lm": Case(
        lambda mos: masked_lm.build("ordered", MASKED, mos, norm_first=True),
        mixed(MASKED, embed_dim=12, attention=KINDS), masked_lm_loss, (masked_lm.sentences(),), ("layer",),
    ),
}  # fmt: skip
TOLERANCE = {"fp32": 1e-4, "tf32": 3e-2, "fp16": 3e-2, "bf16": 0.15}


def update(case: Case, net: Any, batch: tuple[Tensor, ...]) -> dict[str, Tensor]:
    """The loss, summed over the architectures of a sandwich, and the gradients of one update."""
    total = torch.zeros((), device=batch[0].device)
    for architecture in sandwich(net.space, case.architecture).values():
        loss = case.loss(net, net.select(architecture), *batch)
        loss.backward()
        total += loss.detach()
    return {"loss": total} | {name: p.grad for name, p in net.named_parameters() if p.grad is not None}


def check_update(case: Case, mos: str, precision: str, how: str, device: str) -> None:
    """As autocast computes it (``amp``), or with parameters of 16 bits (``cast``)."""
    half = half_type(precision)
    expected = update(case, case.network(mos), case.batch)
    net = case.network(mos).to(device)
    net = net.to(half) if how == "cast" and half is not None else net
    batch = tuple(x.to(device) for x in case.batch)
    with computing_in(precision if how == "amp" else "fp32", device), no_host_reads(device, copies=True):
        got = update(case, net, batch)
    close_in(precision, got["loss"], expected["loss"], times=3)
    assert len(got) > 10
    gradients_close(got, expected, TOLERANCE[precision])


@pytest.mark.parametrize("how", ["amp", "cast"])
@pytest.mark.parametrize(("name", "mos"), [(name, mos) for name, case in CASES.items() for mos in case.mixtures])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_update_is_near_that_of_float32(precision: str, name: str, mos: str, how: str, device: str) -> None:
    if half_type(precision) is None and how == "cast":
        pytest.skip("parameters of fp32 and tf32 are float32 either way")
    check_update(CASES[name], mos, precision, how, device)


# -- decoding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["amp", "cast"])
@pytest.mark.parametrize("precision", PRECISIONS)
@torch.no_grad()
def test_translations_are_decoded_as_the_whole_sequence(precision: str, how: str, device: str) -> None:
    """With beams that change places within their sentences, which is checked on the CPU only."""
    half, exact = half_type(precision), translation_network("layer").eval()
    net = translation_network("layer").to(device).eval()
    net = net.to(half) if how == "cast" and half is not None else net
    source, tokens = PAIRS[0], translation.sentences(8, 8, 8, 8, 8, 8, seed=1)
    rows, order = torch.tensor([0, 0, 1, 1, 2, 2]), torch.tensor([1, 0, 2, 2, 5, 4])
    on_device, fed, moves, owners = source.to(device), tokens.to(device), order.to(device), rows.to(device)
    with computing_in(precision if how == "amp" else "fp32", device), host_reads(device, copies=True) as reads:
        subnet = net.select(MIXED)
        cache = net.start(subnet, net.encode(subnet, on_device), owners)
        steps = []
        for position in range(8):
            steps.append(net.step(subnet, fed[:, position], cache))
            if position == 3:
                fed = torch.cat([fed[moves, :4], fed[:, 4:]], 1)
                cache.reorder(moves)
    assert set(reads) <= ({"aten.equal"} if device == "cpu" else set())
    moved, subnet = torch.cat([tokens[order, :4], tokens[:, 4:]], 1), exact.select(MIXED)
    before, after = (exact(subnet, source[rows], prefix) for prefix in (tokens, moved))
    close_in(precision, torch.stack(steps, 1), torch.cat([before[:, :4], after[:, 4:]], 1), times=3)
