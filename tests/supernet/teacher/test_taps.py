"""What linear layers read and give, recorded by their weights."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nas_core.layers.weights import named_tensors
from nas_core.models.translation.net import TranslationNet
from nas_core.space import get_space
from nas_core.supernet.teacher.taps import Taps


def test_modules_are_recorded_in_the_order_of_their_calls() -> None:
    first, second = nn.Linear(3, 4), nn.Linear(4, 4)
    x = torch.randn(2, 3)
    with Taps({"first": first.weight, "second": second.weight}, outputs=True) as taps:
        hidden = first(x)
        twice = second(second(hidden))
    first(x)
    assert [len(taps.inputs[name]) for name in ("first", "second")] == [1, 2]
    assert taps.inputs["first"][0] is x and taps.inputs["second"][0] is hidden
    assert taps.outputs["second"][1] is twice
    taps.clear()
    assert taps.inputs == taps.outputs == {"first": [], "second": []}


def test_slices_are_told_from_each_other_and_from_the_whole() -> None:
    weight = nn.Parameter(torch.randn(6, 5))
    x = torch.randn(2, 5)
    with Taps({"whole": weight, "rows": weight[:4], "columns": weight[:, :3]}) as taps:
        F.linear(x, weight)
        F.linear(x, weight[:4])
        F.linear(x[:, :3], weight[:, :3])
    assert {name: len(found) for name, found in taps.inputs.items()} == {"whole": 1, "rows": 1, "columns": 1}


@pytest.mark.parametrize("smallest", [True, False])
def test_names_of_a_subnets_layers_and_the_gradient_of_what_they_gave(smallest: bool) -> None:
    torch.manual_seed(0)
    net = TranslationNet(get_space("hat_small"), 20, 20)
    subnet = net.select(net.space.smallest() if smallest else net.space.largest())
    expected = {name: tensor for name, tensor in named_tensors(subnet) if name.endswith("out_proj.weight")}
    assert "decoder_layers.0.cross_attn.out_proj.weight" in expected
    source, target = torch.randint(4, 20, (2, 5)), torch.randint(4, 20, (2, 6))
    with Taps(expected, inputs=False, outputs=True) as taps:
        net(subnet, source, target)
    shapes = {name: [tuple(x.shape) for x in found] for name, found in taps.outputs.items()}
    layers = subnet.architecture.number("encoder.layers") + 2 * subnet.architecture.number("decoder.layers")
    assert len(shapes) == layers and all(len(found) == 1 for found in shapes.values())
    width = subnet.architecture.number("decoder.embed_dim")
    assert shapes["decoder_layers.0.cross_attn.out_proj.weight"] == [(2, 6, width)]
    (output,) = taps.outputs["decoder_layers.0.cross_attn.out_proj.weight"]
    output.square().sum().backward()
    gradients = [name for name, parameter in net.named_parameters() if parameter.grad is not None]
    assert "decoder_layers.0.cross_attn.q_proj.weight" in gradients
    assert not [name for name in gradients if name.startswith("decoder_layers.1")]
