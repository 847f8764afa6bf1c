"""What a language model is cut along: sorting changes nothing of the whole, and smaller ones keep the first."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nas_core.models.language.elastic import LANGUAGE_ELASTIC
from nas_core.space import Architecture
from nas_core.supernet.elastic.sorting import sort_axes
from tests.models.language.tiny import SPACE, architecture, build, close, sentences

FORMS: dict[str, dict[str, Any]] = {
    "tied": {"positions": "stored", "norm_first": True},
    "untied": {"positions": "learned", "tied_output": False},
    "sinusoids": {},
}


@pytest.mark.parametrize("form", FORMS)
@torch.no_grad()
def test_any_order_of_every_axis_computes_the_same(form: str) -> None:
    """Of networks that use any kind of attention, also mixed."""
    net = build(**FORMS[form]).eval()
    axes = LANGUAGE_ELASTIC.axes(net)
    full = [SPACE.largest(), Architecture({**SPACE.largest().to_dict(), "attention": ["linear", "softmax"] * 2})]
    before = [net(net.select(each), sentences(2, 20)) for each in full]
    torch.manual_seed(3)
    orders = sort_axes(net, axes, {axis.name: torch.rand(axis.size) for axis in axes})
    assert len(orders) == len(axes) == 8 + (form != "sinusoids")
    for each, want in zip(full, before, strict=True):
        close(net(net.select(each), sentences(2, 20)), want, 2e-5)


@torch.no_grad()
def test_layers_that_run_and_their_order() -> None:
    net = build().eval()
    assert LANGUAGE_ELASTIC.sides(net) == {"": 4}
    full = net.select(SPACE.largest())
    assert LANGUAGE_ELASTIC.select_layers(net, full, {}) is full
    without = LANGUAGE_ELASTIC.select_layers(net, full, {"": (3, 0, 2)})
    assert [id(each) for each in without.layers] == [id(full.layers[index]) for index in (0, 2, 3)]
    LANGUAGE_ELASTIC.set_order(net, {"": (2, 0, 3, 1)})
    genes = {**architecture("softmax", 16).to_dict(), "heads": [4] * 3, "ffn_dim": [24] * 3}
    close(net(net.select(Architecture(genes)), sentences(2, 9)), net(without, sentences(2, 9)))
