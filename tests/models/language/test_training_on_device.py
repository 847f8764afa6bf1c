"""Language models in every precision: an update near that of float32 on the CPU, steps as the whole sequence, and a
host that waits for nothing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nas_core.layers.smoothed_loss import projected_smoothed_loss
from nas_core.models.language import LanguageNet
from nas_core.precision import computing_in, half_type
from nas_core.space import Architecture, language_space
from tests.devices import PRECISIONS, close_in, gradients_close
from tests.host_reads import no_host_reads
from tests.models.language.tiny import PAD, build, sentences

WIDE = language_space(
    "wide", layers=(3, 2, 1), embed_dims=(16, 12), ffn_dims=(24, 16, 8), heads=(4, 2), head_dim=16,
    context_length=40, attention=("softmax", "local", "linear"),
)  # fmt: skip
"""Heads wide enough that few queries have no positive channel: a small denominator is a large gradient."""
MIXED = Architecture({**WIDE.largest().to_dict(), "attention": ["softmax", "linear", "local"], "embed_dim": 12})


def network(mos: str) -> LanguageNet:
    return build(mos, WIDE, norm_first=True)


def update(net: LanguageNet, tokens: Tensor) -> dict[str, Tensor]:
    """Loss and gradients of one update."""
    subnet = net.select(MIXED)
    features = net.features(subnet, tokens[:, :-1]).flatten(0, 1)
    loss, _ = projected_smoothed_loss(features, subnet.output, tokens[:, 1:].flatten(), 0.1, PAD)
    (loss / 4).backward()
    return {"loss": loss.detach()} | {name: p.grad for name, p in net.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("how", ["amp", "cast"])
@pytest.mark.parametrize("mos", ["none", "layer"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_update_is_near_that_of_float32(precision: str, mos: str, how: str, device: str) -> None:
    half = half_type(precision)
    if half is None and how == "cast":
        pytest.skip("parameters of fp32 and tf32 are float32 either way")
    expected = update(network(mos), sentences(3, 25))
    net = network(mos).to(device)
    net = net.to(half) if how == "cast" else net
    there = sentences(3, 25).to(device)
    with computing_in(precision if how == "amp" else "fp32", device), no_host_reads(device, copies=True):
        got = update(net, there)
    close_in(precision, got["loss"], expected["loss"], times=3)
    assert len(got) > 20
    gradients_close(got, expected, {"fp32": 1e-4, "tf32": 2e-2, "fp16": 3e-2, "bf16": 0.15}[precision])


@pytest.mark.parametrize("how", ["amp", "cast"])
@pytest.mark.parametrize("precision", PRECISIONS)
@torch.no_grad()
def test_a_prompt_and_steps_equal_the_whole_sequence(precision: str, how: str, device: str) -> None:
    half, exact, tokens = half_type(precision), network("none").eval(), sentences(3, 24)
    expected = exact(exact.select(MIXED), tokens)[:, 19:]
    net = network("none").to(device).eval()
    net = net.to(half) if how == "cast" and half is not None else net
    there = tokens.to(device)
    with computing_in(precision if how == "amp" else "fp32", device), no_host_reads(device, copies=True):
        subnet = net.select(MIXED)
        features, cache = net.read(subnet, there[:, :20])
        found = [torch.nn.functional.linear(features, subnet.output)]
        found += [net.step(subnet, there[:, at], cache) for at in range(20, 24)]
    close_in(precision, torch.stack(found, 1), expected, times=3)
