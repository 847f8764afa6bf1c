"""Translation networks of mFormer's and MoS's spaces in every precision: SPOS and sandwich steps near those of float32
on the CPU, decoding as the whole sequence, and a host that waits for nothing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.layers.attention import LinearAttention
from nas_core.layers.smoothed_loss import projected_smoothed_loss
from nas_core.models.translation import TranslationNet
from nas_core.precision import computing_in, half_type
from nas_core.space import Architecture, translation_space, with_attention
from nas_core.supernet.sampling import sandwich
from tests.devices import PRECISIONS, close_in, gradients_close
from tests.host_reads import host_reads, no_host_reads
from tests.layers.attention.cuda_forms import take_cuda_forms
from tests.models.translation.tiny import PAD, VOCAB, build, sentences

SPACE = translation_space(
    "tiny-heads",  # wide enough that few queries have no positive channel: a small denominator is a large gradient
    embed_dims=(16, 12),
    ffn_dims=(24, 16, 8),
    heads=(4, 2),
    encoder_layers=(3, 2, 1),
    decoder_layers=(3, 2, 1),
    qkv_dim=64,
)
BOTH = ("softmax", "linear")
SPACES = {"mformer": with_attention(SPACE, "tiny-mformer", BOTH, BOTH, BOTH), "hat": SPACE}
NETWORKS = {
    "mformer": ("mformer", "none"),
    "MoS, by layer": ("hat", "layer"),
    "MoS, by neuron": ("hat", "neuron"),
    "both": ("mformer", "layer"),
}
SAMPLINGS = ("spos", "sandwich")


def network(name: str, embeddings: str = "all") -> TranslationNet:
    space, mos = NETWORKS[name]
    return build(mos, embeddings, SPACES[space], linear=LinearAttention(24), norm_first=True)


def drawn(net: TranslationNet, sampling: str) -> list[Architecture]:
    """The architectures of one update; linear attention in some layers, softmax in others."""
    genes = net.space.largest().to_dict()
    for gene, kinds in (("encoder.self_attention", BOTH), ("decoder.self_attention", BOTH[::-1])):
        if gene in genes:
            genes[gene] = [kinds[layer % 2] for layer in range(3)]
    if "decoder.cross_attention" in genes:
        genes["decoder.cross_attention"] = ["linear", "softmax", "linear"]
    random = Architecture({**genes, "encoder.embed_dim": 12})
    return [random] if sampling == "spos" else list(sandwich(net.space, random).values())


def update(net: TranslationNet, architectures: list[Architecture], batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
    """The loss, summed over the architectures, and the gradients of one update of supernet training."""
    source, target = batch
    total = torch.zeros((), device=source.device)
    for architecture in architectures:
        subnet = net.select(architecture)
        features = net.decode_features(subnet, target[:, :-1], net.encode(subnet, source)).flatten(0, 1)
        loss, _ = projected_smoothed_loss(features, subnet.output, target[:, 1:].flatten(), 0.1, PAD)
        (loss / 4).backward()
        total += loss.detach()
    return {"loss": total} | {name: p.grad for name, p in net.named_parameters() if p.grad is not None}


def batch(device: str) -> tuple[Tensor, Tensor]:
    return sentences(9, 13, 4, left=True).to(device), sentences(11, 7, 12, seed=1).to(device)


def near(precision: str, got: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Loss and gradients; of gradients the direction of each, since single numbers pass through many layers."""
    close_in(precision, got["loss"], expected["loss"])
    assert len(got) > 20
    gradients_close(got, expected, {"fp32": 1e-4, "tf32": 2e-2, "fp16": 2e-2, "bf16": 0.12}[precision])


@pytest.mark.parametrize("how", ["amp", "cast"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "both"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_update_is_near_that_of_float32(precision: str, name: str, sampling: str, how: str, device: str) -> None:
    """Both as autocast computes it (``amp``) and with parameters that are halves, as fairseq's --fp16 and --bf16."""
    half = half_type(precision)
    if half is None and how == "cast":
        pytest.skip("parameters of fp32 and tf32 are float32 either way")
    reference = network(name)
    expected = update(reference, drawn(reference, sampling), batch("cpu"))
    net = network(name).to(device)
    net = net.to(half) if how == "cast" else net
    there = batch(device)
    with computing_in(precision if how == "amp" else "fp32", device), no_host_reads(device, copies=True):
        got = update(net, drawn(net, sampling), there)
    near(precision, got, expected)


@pytest.mark.parametrize("how", ["amp", "cast"])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_an_update_in_the_forms_of_cuda(precision: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU, where ``auto`` takes others."""
    reference = network("mformer")
    expected = update(reference, drawn(reference, "sandwich"), batch("cpu"))
    taken = take_cuda_forms(monkeypatch)
    net, half = network("mformer"), half_type(precision)
    net = net.to(half) if how == "cast" and half is not None else net
    there = batch("cpu")
    with computing_in(precision if how == "amp" else "fp32", "cpu"), no_host_reads("cpu", copies=True):
        got = update(net, drawn(net, "sandwich"), there)
    assert taken == {"dense"}
    near(precision, got, expected)


@pytest.mark.parametrize("how", ["amp", "cast"])
@pytest.mark.parametrize("precision", PRECISIONS)
@torch.no_grad()
def test_decoding_equals_the_whole_sequence(precision: str, how: str, device: str) -> None:
    """With beams that change places within their sentences, which on the CPU alone is asked for."""
    half = half_type(precision)
    net = network("both").to(device).eval()
    exact = network("both").eval()
    architecture = drawn(exact, "spos")[0]
    net = net.to(half) if how == "cast" and half is not None else net
    source, tokens = sentences(9, 13, 4, left=True), sentences(8, 8, 8, 8, 8, 8, seed=1)
    rows, order = torch.tensor([0, 0, 1, 1, 2, 2]), torch.tensor([1, 0, 2, 2, 5, 4])
    subnet = exact.select(architecture)
    expected = exact(subnet, source[rows], tokens)
    there, fed, moves, owners = source.to(device), tokens.to(device), order.to(device), rows.to(device)
    with computing_in(precision if how == "amp" else "fp32", device), host_reads(device, copies=True) as found:
        subnet = net.select(architecture)
        cache = net.start(subnet, net.encode(subnet, there), owners)
        steps = []
        for position in range(tokens.shape[1]):
            steps.append(net.step(subnet, fed[:, position], cache))
            if position == 3:  # the prefix of each row moves with it: all its rows have one, so nothing else changes
                fed = torch.cat([fed[moves, : position + 1], fed[:, position + 1 :]], 1)
                cache.reorder(moves)
                owners = owners.index_select(0, moves)
    assert set(found) <= ({"aten.equal"} if device == "cpu" else set())
    prefix = torch.cat([tokens[order, :4], tokens[:, 4:]], 1)
    after = exact(exact.select(architecture), source[rows], prefix)
    whole = torch.cat([expected[:, :4], after[:, 4:]], 1)
    close_in(precision, torch.stack(steps, 1), whole, times=3)


@torch.no_grad()
def test_beams_that_move_to_other_sentences(device: str) -> None:
    """Rows that then read another source, and fewer of them: the same logits with and without asking the device."""
    net = network("both").to(device).eval()
    subnet = net.select(drawn(net, "spos")[0])
    source = sentences(9, 13, 4).to(device)
    cache = net.start(subnet, net.encode(subnet, source), torch.tensor([0, 0, 1, 1, 2, 2], device=device))
    order = torch.tensor([4, 5, 2], device=device)
    net.step(subnet, torch.full((6,), 5, device=device), cache)
    cache.reorder(order)
    logits = net.step(subnet, torch.tensor([7, 8, 9], device=device), cache)
    prefix = torch.tensor([[5, 7], [5, 8], [5, 9]], device=device)
    whole = net(subnet, source[torch.tensor([2, 2, 1], device=device)], prefix)[:, -1]
    close_in("fp32", logits, whole, times=3)


@torch.no_grad()
def test_a_source_beyond_the_linear_scale_is_refused_without_reading_positions_of_others(device: str) -> None:
    """What is too long may be padding alone: only then the host reads how far the tokens reach."""
    net = network("mformer").to(device).eval()
    subnet = net.select(drawn(net, "spos")[0])
    source = sentences(24, 7).to(device)
    with no_host_reads(device, copies=True):
        net.start(subnet, net.encode(subnet, source))
    padding = torch.full((2, 6), PAD, device=device)
    longer = torch.cat([sentences(24, 7).to(device), padding], 1)
    close = net.decode(subnet, torch.full((2, 1), 5, device=device), net.encode(subnet, longer))
    short = net.decode(subnet, torch.full((2, 1), 5, device=device), net.encode(subnet, longer[:, :24]))
    close_in("fp32", close, short, times=3)
    with pytest.raises(ConfigError, match="max_length 24"):
        net.start(subnet, net.encode(subnet, sentences(25, 7).to(device)))
    assert close.shape == (2, 1, VOCAB)
