"""What a masked language model is cut along: sorting changes nothing of the whole, and smaller ones keep the first."""

from __future__ import annotations

import torch

from nas_core.models.masked_lm import MaskedLMNet
from nas_core.models.masked_lm.elastic import MASKED_LM_ELASTIC
from nas_core.supernet.elastic.sorting import sort_axes
from tests.models.masked_lm.tiny import SPACE, build, close, every_form, sentences


def outputs(net: MaskedLMNet) -> list[torch.Tensor]:
    subnet = net.select(SPACE.largest())
    features = net.encode(subnet, sentences())
    return [net.predict(subnet, features), *(net.classify(subnet, features, name) for name in net.classification_heads)]


@every_form
@torch.no_grad()
def test_any_order_of_every_axis_computes_the_same(form: str) -> None:
    net = build(form)
    before = outputs(net)
    state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    axes = MASKED_LM_ELASTIC.axes(net)
    torch.manual_seed(3)
    orders = sort_axes(net, axes, {axis.name: torch.rand(axis.size) for axis in axes})
    assert all((order != torch.arange(len(order))).any() for order in orders.values())
    for got, want in zip(outputs(net), before, strict=True):
        close(got, want, 2e-5)
    kept = {name for name, tensor in net.state_dict().items() if torch.equal(tensor, state[name])}
    computed = ("embedding", "positions") if net.config.positions == "sinusoidal" else ()
    unmoved = [name for name in kept if not name.startswith(("reference", "head.bias", "norm", *computed))]
    assert all(name.endswith("out_proj.bias") for name in unmoved) or computed
