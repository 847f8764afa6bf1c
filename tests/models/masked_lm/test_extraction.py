"""Static masked language models against the subnets that they were extracted from, outputs and gradients."""

from __future__ import annotations

import pytest
import torch

from nas_core.layers.positions import sinusoids
from nas_core.layers.weights import named_tensors
from nas_core.models.masked_lm import MaskedLMNet
from nas_core.models.masked_lm.costs import parameters
from tests.models.masked_lm.tiny import (
    ARCHITECTURES,
    MIXED,
    MIXTURES,
    SPACE,
    VOCAB,
    architectures,
    build,
    close,
    every_architecture,
    every_form,
    extract,
    sentences,
)


@pytest.mark.parametrize("mos", MIXTURES)
@every_form
@every_architecture
def test_extracted_equals_the_active_subnet(mos: str, form: str, name: str) -> None:
    net, architecture = build(form, mos=mos), ARCHITECTURES[name]
    static = extract(net, architecture)
    assert static.space.largest() == architecture
    subnet, own = net.select(architecture), static.select(architecture)
    selected = dict(named_tensors(subnet))
    for tensor in selected.values():
        tensor.retain_grad()
    tokens, outputs = sentences(), list[torch.Tensor]()
    for model, weights in ((net, subnet), (static, own)):
        features = model.encode(weights, tokens)
        heads = [model.classify(weights, features, head) for head in weights.classification_heads]
        found = [model.predict(weights, features), *heads]
        torch.manual_seed(1)
        sum((out * torch.randn(out.shape)).sum() for out in found).backward()
        outputs += found
    for got, want in zip(outputs[: len(outputs) // 2], outputs[len(outputs) // 2 :], strict=True):
        close(got, want)
    supernet = dict(net.named_parameters())
    for parameter, tensor in static.named_parameters():
        if parameter in supernet and supernet[parameter].dim() == tensor.dim() and ".layers." not in f".{parameter}":
            got = supernet[parameter].grad[tuple(slice(size) for size in tensor.shape)]  # type: ignore[index]
        else:  # layers that move, and matrices that are mixed from experts
            got = selected[parameter].grad
        assert got is not None and tensor.grad is not None, parameter
        close(got, tensor.grad, what=f"gradient of {parameter}")


@every_form
@every_architecture
def test_counted_parameters_equal_the_formula(form: str, name: str) -> None:
    static = extract(build(form), ARCHITECTURES[name])
    counted = sum(parameter.numel() for parameter in static.parameters())
    assert counted == parameters(ARCHITECTURES[name], VOCAB, static.config)


@pytest.mark.parametrize("name", architectures(MIXED))
def test_each_kind_of_attention_is_extracted(name: str) -> None:
    net, architecture = build(space=MIXED), architectures(MIXED)[name]
    static = extract(net, architecture)
    with torch.no_grad():
        close(net(net.select(architecture), sentences()), static(static.select(architecture), sentences()))


def test_the_width_of_the_supernet_travels_with_the_weights() -> None:
    static = extract(build("sinusoids"), SPACE.smallest())
    assert int(static.reference_width) == 16 and static.positions.width == 16
    assert torch.equal(static.positions(300, 12), sinusoids(300, 16)[:, :12])
    assert MaskedLMNet(static.space, VOCAB, reference_width=16).positions.width == 16
