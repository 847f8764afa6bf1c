"""An update of a masked language model in every precision, near that of float32 on the CPU, and a host that waits for
nothing."""

from __future__ import annotations

import pytest
import torch.nn.functional as F
from torch import Tensor

from nas_core.models.masked_lm import MaskedLMNet
from nas_core.precision import computing_in, half_type
from nas_core.space import Architecture, masked_lm_space
from tests.devices import PRECISIONS, close_in, gradients_close
from tests.host_reads import no_host_reads
from tests.models.masked_lm.tiny import SIZES, build, sentences

WIDE = masked_lm_space("wide", **{**SIZES, "head_dim": 16}, attention=("softmax", "linear", "local"))
"""Heads wide enough that few queries have no positive channel: a small denominator is a large gradient."""


def network(mos: str) -> MaskedLMNet:
    return build("ordered", WIDE, mos, norm_first=True)


def architecture() -> Architecture:
    genes = {**WIDE.largest().to_dict(), "attention": ["softmax", "linear", "local"], "embed_dim": 12}
    return Architecture(genes)


def update(net: MaskedLMNet, tokens: Tensor) -> dict[str, Tensor]:
    """Loss and gradients of one update, on the tokens of even columns."""
    subnet = net.select(architecture())
    features = net.encode(subnet, tokens)
    logits = net.predict(subnet, features[:, ::2]).float()
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, ::2].flatten(), ignore_index=net.config.padding_idx)
    loss = loss + net.classify(subnet, features, "topic").float().logsumexp(-1).mean()
    loss.backward()
    return {"loss": loss.detach()} | {name: p.grad for name, p in net.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("how", ["amp", "cast"])
@pytest.mark.parametrize("mos", ["none", "layer"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_update_is_near_that_of_float32(precision: str, mos: str, how: str, device: str) -> None:
    half = half_type(precision)
    if half is None and how == "cast":
        pytest.skip("parameters of fp32 and tf32 are float32 either way")
    expected = update(network(mos), sentences())
    net = network(mos).to(device)
    net = net.to(half) if how == "cast" else net
    there = sentences().to(device)
    with computing_in(precision if how == "amp" else "fp32", device), no_host_reads(device, copies=True):
        got = update(net, there)
    close_in(precision, got["loss"], expected["loss"], times=3)
    assert len(got) > 20
    gradients_close(got, expected, {"fp32": 1e-4, "tf32": 2e-2, "fp16": 3e-2, "bf16": 0.15}[precision])
