"""Image networks of mFormer's space, with and without experts, in every precision: SPOS and sandwich steps near those
of float32 on the CPU, in every form of linear attention, and a host that waits for nothing."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.errors import UnknownChoiceError
from nas_core.layers import MoSConfig
from nas_core.models.image.net import VisionNet
from nas_core.models.image.net import VisionConfig
from nas_core.precision import computing_in, half_type
from nas_core.space import Architecture, image_space
from nas_core.supernet.sampling import sandwich
from tests.devices import PRECISIONS, close_in, gradients_close
from tests.host_reads import no_host_reads
from tests.layers.attention.cuda_forms import take_cuda_forms

SPACE = image_space(
    "tiny",
    layers=(1, 2, 3),
    embed_dims=(16, 24),
    ffn_dims=(16, 32),
    heads=(1, 2, 3),
    head_dim=8,
    image_size=16,
    patch_size=4,
    attention=("softmax", "linear", "local"),
    relative_clip=3,
)
MIXED = Architecture(
    {
        "layers": 3,
        "embed_dim": 16,
        "ffn_dim": (32, 16, 32),
        "heads": (2, 3, 1),
        "attention": ("linear", "softmax", "linear"),
        **SPACE.fixed,
    }
)
NETWORKS = ("none", "layer", "neuron")


def network(mos: str, **config: object) -> VisionNet:
    torch.manual_seed(5)
    net = VisionNet(SPACE, VisionConfig(classes=5, mos=MoSConfig(kind=mos, router_hidden=8), **config))  # type: ignore[arg-type]
    with torch.no_grad():  # biases and norms start as constants, which would hide mistakes
        for parameter in net.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return net


def update(net: VisionNet, sampling: str, images: Tensor, classes: Tensor) -> dict[str, Tensor]:
    """The loss, summed over the architectures, and the gradients of one update of supernet training."""
    architectures = [MIXED] if sampling == "spos" else list(sandwich(SPACE, MIXED).values())
    total = torch.zeros((), device=images.device)
    for architecture in architectures:
        loss = F.cross_entropy(net(net.select(architecture), images).float(), classes)
        (loss * 64).backward()  # as a scaler does, against underflow
        total += loss.detach()
    return {"loss": total} | {name: p.grad for name, p in net.named_parameters() if p.grad is not None}


def batch(device: str) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    return torch.randn(6, 3, 16, 16, generator=generator).to(device), torch.arange(6, device=device) % 5


def near(precision: str, got: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    close_in(precision, got["loss"], expected["loss"], times=2)
    assert len(got) > 10
    gradients_close(got, expected, {"fp32": 1e-4, "tf32": 3e-2, "fp16": 3e-2, "bf16": 0.15}[precision])


@pytest.mark.parametrize("how", ["amp", "cast"])
@pytest.mark.parametrize("sampling", ["spos", "sandwich"])
@pytest.mark.parametrize("mos", NETWORKS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_update_is_near_that_of_float32(precision: str, mos: str, sampling: str, how: str, device: str) -> None:
    half = half_type(precision)
    if half is None and how == "cast":
        pytest.skip("parameters of fp32 and tf32 are float32 either way")
    expected = update(network(mos), sampling, *batch("cpu"))
    net, (images, classes) = network(mos).to(device), batch(device)
    if how == "cast" and half is not None:
        net, images = net.to(half), images.to(half)
    with computing_in(precision if how == "amp" else "fp32", device), no_host_reads(device, copies=True):
        got = update(net, sampling, images, classes)
    near(precision, got, expected)


@pytest.mark.parametrize("how", ["amp", "cast"])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_an_update_in_the_forms_of_cuda(precision: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU, where ``auto`` takes others."""
    expected = update(network("none"), "sandwich", *batch("cpu"))
    taken = take_cuda_forms(monkeypatch)
    net, (images, classes), half = network("none"), batch("cpu"), half_type(precision)
    if how == "cast" and half is not None:
        net, images = net.to(half), images.to(half)
    with computing_in(precision if how == "amp" else "fp32", "cpu"), no_host_reads("cpu", copies=True):
        got = update(net, "sandwich", images, classes)
    assert taken == {"dense"}
    near(precision, got, expected)


@pytest.mark.parametrize("form", ["streaming", "chunked", "dense", "naive", "fla"])
def test_a_model_that_asks_for_a_form_computes_the_same(form: str, device: str) -> None:
    expected = update(network("none"), "spos", *batch("cpu"))
    net = network("none", linear_form=form).to(device)
    with computing_in("fp32", device):
        near("fp32", update(net, "spos", *batch(device)), expected)
    assert net.state_dict().keys() == network("none").state_dict().keys()


def test_a_form_that_is_none_is_refused() -> None:
    with pytest.raises(UnknownChoiceError, match="form of linear attention"):
        network("none", linear_form="quick")


@pytest.mark.parametrize("precision", PRECISIONS)
@torch.no_grad()
def test_evaluation(precision: str, device: str) -> None:
    exact, net = network("layer").eval(), network("layer").to(device).eval()
    expected = exact(exact.select(MIXED), batch("cpu")[0])
    images = batch(device)[0]
    with computing_in(precision, device), no_host_reads(device, copies=True):
        got = net(net.select(MIXED), images)
    close_in(precision, got, expected, times=3)
