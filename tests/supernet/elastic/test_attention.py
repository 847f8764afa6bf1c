"""Other kinds of attention are fitted to the trained one, which stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.layers.attention.kinds import ATTENTION_KINDS
from nas_core.layers.attention.projections import SelfAttentionWeights, split_heads
from nas_core.layers.weights import Affine
from nas_core.models.elastic import layer_axes
from nas_core.models.translation import TranslationNet
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.elastic.attention import FitConfig, FitErrors, fit, rotate
from nas_core.supernet.elastic.conversion import convert
from nas_core.supernet.elastic.recording import Recorded, attentions_of, compute_attention, record
from tests.supernet.elastic.reversing import PAD, PLAIN, SEVERAL, Batch, batches, loss, several, trained

STEPS = 60
ENCODER, DECODER, CROSS = "encoder.self_attention", "decoder.self_attention", "decoder.cross_attention"


def loss_of(net: TranslationNet) -> Callable[[Any, Batch], Tensor]:
    return lambda subnet, batch: loss(net, subnet, batch)


def fitted(count: int = 8, steps: int = STEPS) -> tuple[TranslationNet, list[FitErrors]]:
    net = several()
    return net, fit(net, SEVERAL, batches(count, 7), loss_of(net), FitConfig(steps=steps))


@pytest.fixture(scope="module")
def whole() -> tuple[TranslationNet, list[FitErrors]]:
    return fitted()


def changed(gene: str, kind: str) -> Architecture:
    largest = SEVERAL.largest()
    return Architecture({**largest, gene: (kind,) * 2})


def logits(net: TranslationNet, architecture: Architecture, batch: Batch) -> Tensor:
    with torch.no_grad():
        return net(net.select(architecture), batch[0], batch[1])


def test_the_network_with_the_trained_kind_stays_the_same_to_the_last_bit(
    whole: tuple[TranslationNet, list[FitErrors]],
) -> None:
    (batch,) = batches(1, 5)
    want = logits(trained(), PLAIN.largest(), batch)
    assert torch.equal(logits(several(), SEVERAL.largest(), batch), want)
    assert torch.equal(logits(whole[0], SEVERAL.largest(), batch), want)


def test_every_alternative_comes_nearer_on_data_that_it_did_not_see(
    whole: tuple[TranslationNet, list[FitErrors]],
) -> None:
    results = {(each.gene, each.layer, each.kind): each for each in whole[1]}
    assert set(results) == {(gene, layer, "linear") for gene in (ENCODER, DECODER, CROSS) for layer in range(2)}
    for errors in results.values():
        assert errors.closed_form < 0.7 * errors.before, errors
        assert errors.final < 0.5 * errors.before, errors


@pytest.mark.parametrize(("gene", "place"), [
    (ENCODER, ("encoder_layers", 0, "self_attn")),
    (DECODER, ("decoder_layers", 1, "self_attn")),
    (CROSS, ("decoder_layers", 0, "cross_attn")),
])  # fmt: skip
def test_padding_counts_for_nothing(gene: str, place: tuple[str | int, ...]) -> None:
    net, (batch,) = several(), batches(1, 3)
    subnet = net.select(SEVERAL.largest())
    other = dict(attentions_of(net.select(changed(gene, "linear"))))[place]
    (result,) = record(subnet, place, [other.kind], [batch], loss_of(net))
    tokens = batch[0] if gene == ENCODER else batch[1]
    assert torch.equal(result.loss_mask, tokens != PAD)
    weights = dict(attentions_of(subnet))[place]
    assert torch.allclose(compute_attention(weights, result), result.output, atol=1e-6), (
        "what was recorded computes the same again"
    )
    wider = tuple(torch.nn.functional.pad(part, (0, 3), value=PAD) for part in batch)
    (padded,) = record(subnet, place, [other.kind], [wider], loss_of(net))
    length = tokens.shape[1]
    assert not padded.loss_mask[:, length:].any()
    with torch.no_grad():
        want, got = compute_attention(other, result), compute_attention(other, padded)[:, :length]
    assert torch.allclose(got[result.loss_mask], want[result.loss_mask], atol=1e-5)


class TrainedReversing:
    """A :class:`nas_core.supernet.elastic.conversion.Trained` of the small translation network."""

    form: Any = SimpleNamespace(
        axes=lambda net: tuple(
            axis
            for index, layer in enumerate(net.decoder_layers)
            for axis in layer_axes(f"decoder.layers.{index}", f"decoder_layers.{index}.", layer, 12)
        ),
        sides=lambda net: {},
        set_order=lambda net, order: None,
    )

    def __init__(self, space: SearchSpace = SEVERAL) -> None:
        self.net, self.space = several() if space is SEVERAL else trained(), space
        self.saved: dict[str, Tensor] = {}

    def difference(self, net: TranslationNet) -> float:
        (batch,) = batches(1, 5)
        want = logits(trained(), PLAIN.largest(), batch)
        return float((logits(net, SEVERAL.largest(), batch) - want).abs().max() / want.abs().max())

    def calibration(self, count: int) -> list[Batch]:
        return batches(count, 7)

    def loss(self, net: TranslationNet, subnet: Any, batch: Batch) -> Tensor:
        return loss(net, subnet, batch)

    def save(self, path: Path, net: TranslationNet) -> None:
        self.saved = {name: tensor.clone() for name, tensor in net.state_dict().items()}
        path.write_text("a supernet")


def test_a_network_is_taken_over_with_alternatives_fitted_after_heads_were_sorted(tmp_path: Path) -> None:
    host = TrainedReversing()
    done = convert(host, tmp_path / "out", importance_by="activation", calibration_batches=3, fit_steps=5)
    assert done.difference <= 1e-5 and len(done.fitted) == 6
    assert all(each.final < each.before for each in done.fitted)
    assert done.sorted_axes == 6, "one order for all kinds of an attention"


@pytest.mark.parametrize("heads", [1, 2])
def test_turned_queries_and_keys_keep_what_is_positive_of_the_largest_products(heads: int) -> None:
    """With as many directions as half the channels of a head, nothing but negative products is lost."""
    stream = torch.Generator().manual_seed(0)
    rank, width = 3, 6
    inner = [torch.randn(rank, 8, generator=stream) for _ in range(2 * heads)]
    mixed = [torch.randn(width, rank, generator=stream) for _ in range(heads)]
    unmixed = [torch.linalg.pinv(each).T for each in mixed]
    rows = [mixed[head] @ inner[head] for head in range(heads)]
    rows += [unmixed[head] @ inner[heads + head] for head in range(heads)]
    weight = torch.cat([*rows, torch.zeros(heads * width, 8)])
    in_proj = Affine(weight, torch.zeros(len(weight)))
    out_proj = Affine(torch.zeros(8, heads * width), torch.zeros(8))
    weights = SelfAttentionWeights(in_proj, out_proj, heads, kind=ATTENTION_KINDS.get("linear"))
    x = torch.randn(2, 40, 8, generator=stream)
    q, k, _ = split_heads(torch.nn.functional.linear(x, *in_proj), 3, heads)
    scores = q @ k.mT
    rotate(weights, [Recorded(x, None, None, True, None, x, torch.ones(2, 40, dtype=torch.bool))])
    q, k, _ = split_heads(torch.nn.functional.linear(x, *in_proj), 3, heads)
    assert torch.allclose(q @ k.mT / 2, scores, atol=1e-2 * float(scores.abs().max())), "each product occurs twice"
    kept = q.relu() @ k.relu().mT
    assert float((kept - scores)[scores > 0].abs().mean()) < float(scores[scores > 0].mean())


def recorded(unread: Callable[[TranslationNet, Any, Batch], Tensor]) -> Callable[[Path], Any]:
    place, kind, net = ("encoder_layers", 0, "self_attn"), ATTENTION_KINDS.get("linear"), several()
    largest = net.select(SEVERAL.largest())
    return lambda path: record(largest, place, [kind], batches(1, 1), lambda subnet, batch: unread(net, subnet, batch))


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (recorded(lambda net, subnet, batch: loss(net, subnet, batch).detach()), "encoder_layers.0.self_attn"),
        (recorded(lambda net, subnet, batch: subnet.output.sum()), "encoder_layers.0.self_attn"),
        (lambda path: convert(TrainedReversing(), path), "--calibration-batches"),
    ],
)
def test_bad_input(call: Callable[[Path], Any], value: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        call(tmp_path / "out")
    assert value in str(caught.value) and "\n" not in str(caught.value) and not list(tmp_path.iterdir())
