"""Conversion: the largest subnet is the trained network, and smaller ones keep what matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from nas_core.errors import CheckpointError, ConfigError, NasExtError, UnknownChoiceError
from nas_core.supernet.elastic.ablation import depth_order, mean_loss, recovered_loss
from nas_core.supernet.elastic.conversion import convert
from nas_core.supernet.elastic.importance import CRITERIA, importance
from nas_core.supernet.elastic.sorting import sort_axes
from tests.supernet.elastic.stack import HEADS, STACK_FORM, C, D, TrainedStack, trained_stack


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_largest_network_is_the_trained_one(criterion: str, tmp_path: Path) -> None:
    trained, path = trained_stack(), tmp_path / "supernet"
    done = convert(trained, path, importance_by=criterion, calibration_batches=3)
    assert path.exists() and done.difference <= 1e-5 and done.batches == 3
    net = trained.saved["net"]
    assert torch.allclose(trained.output(net), trained.y, rtol=1e-5, atol=1e-6)
    assert (done.layer_order == {}) == (criterion == "none")
    assert done.sorted_axes == (0 if criterion == "none" else 6)


@pytest.mark.parametrize("criterion", ["activation", "weight"])
def test_what_does_nothing_is_sorted_last(criterion: str) -> None:
    trained = trained_stack()
    net, layer = trained.net, trained.net.layers[1]
    with torch.no_grad():  # the first head and the first unit of a layer are silenced, as pruning would
        for tensor in (layer.ffn.fc1.weight[0], layer.ffn.fc1.bias[:1], layer.ffn.fc2.weight[:, 0]):
            tensor.zero_()
        layer.self_attn.out_proj.weight[:, :D] = 0
        layer.self_attn.in_proj.weight.view(3, HEADS, D, C)[:, 0] = 0
    trained.__post_init__()
    axes = STACK_FORM.axes(net)
    scores = importance(net, axes, criterion, trained.calibration(2), lambda x: trained.loss(
        net, net.select(trained.space.largest()), x))  # fmt: skip
    orders = sort_axes(net, axes, scores)
    assert int(orders["layers.1.ffn"][-1]) == 0 and int(orders["layers.1.self_attn"][-1]) == 0
    assert trained.difference(net) <= 1e-5
    smaller = {**trained.space.largest(), "heads": (3, 2, 3)}
    cut = net(net.select(type(trained.space.largest())(smaller)), trained.x)
    assert torch.allclose(cut, trained.y, atol=1e-5), "the head that was cut did nothing"


def test_layers_are_left_out_by_what_their_absence_costs(tmp_path: Path) -> None:
    trained = trained_stack()
    for tensor in trained.net.layers[0].self_attn.out_proj.parameters():
        tensor.data.zero_()
    for tensor in trained.net.layers[0].ffn.fc2.parameters():
        tensor.data.zero_()  # all that is left of the first layer is its norms of what is normalised already
    trained.__post_init__()
    done = convert(trained, tmp_path / "supernet", importance_by="activation", calibration_batches=3)
    assert sorted(done.layer_order[""]) == [0, 1, 2] and trained.net.order == done.layer_order[""]
    assert done.layer_order[""][-1] == depth_order({"": 3}, lambda kept: absent_cost(trained, kept[""]))[""][-1]


def absent_cost(trained: TrainedStack, kept: Sequence[int]) -> float:
    net = trained.net
    subnet = STACK_FORM.select_layers(net, net.select(trained.space.largest()), {"": kept})
    with torch.no_grad():
        return float(sum(trained.loss(net, subnet, batch) for batch in trained.calibration(3))) / 3


def test_the_order_of_layers_is_greedy() -> None:
    costs = {(0, 1): 3.0, (0, 2): 1.0, (1, 2): 2.0, (0,): 5.0, (2,): 4.0}
    assert depth_order({"": 3}, lambda kept: costs[tuple(kept[""])]) == {"": (2, 0, 1)}


def test_broken_networks_are_evaluated_after_updates() -> None:
    """Of two layers the first alone has the lower loss, and the second alone recovers from a higher one."""
    costs = {(): 1.0, (0, 1): 1.5, (0, 2): 3.0, (1, 2): 3.0, (0,): 9.0, (1,): 13.0}
    after: dict[tuple[int, ...], float] = {(0,): 5.0, (1,): 3.0}
    evaluated = []

    def recovered(kept: Mapping[str, Sequence[int]]) -> float:
        evaluated.append(tuple(kept[""]))
        return after[evaluated[-1]]

    def loss(kept: Mapping[str, Sequence[int]]) -> float:
        return costs[tuple(kept.get("", ()))]

    assert depth_order({"": 3}, loss) == {"": (0, 1, 2)}
    assert depth_order({"": 3}, loss, recovered) == {"": (1, 0, 2)}
    assert sorted(evaluated) == [(0,), (1,)]


def test_updates_by_which_a_layer_is_evaluated_leave_no_trace() -> None:
    trained = trained_stack()
    batches = trained.calibration(2)
    before = {name: tensor.clone() for name, tensor in trained.net.state_dict().items()}
    kept = {"": (1,)}
    recovered = recovered_loss(trained, kept, batches)
    assert recovered < mean_loss(trained, kept, batches)
    assert all(torch.equal(tensor, before[name]) for name, tensor in trained.net.state_dict().items())
    assert all(parameter.grad is None for parameter in trained.net.parameters())


def diverged() -> TrainedStack:
    trained = trained_stack()
    trained.net.layers[1].ffn.fc1.weight.data[0, 0] = float("nan")
    return trained


@pytest.mark.parametrize(
    ("trained", "path", "settings", "error", "value"),
    [
        (trained_stack, "new", {"importance_by": "activation"}, ConfigError, "activation"),
        (trained_stack, "new", {"importance_by": "magic"}, UnknownChoiceError, "'magic'"),
        (trained_stack, "new", {"calibration_batches": -1}, ConfigError, "-1"),
        (trained_stack, "new", {"fit_steps": -2}, ConfigError, "-2"),
        (trained_stack, "file", {}, ConfigError, "exists"),
        (trained_stack, "file/new", {}, NasExtError, "file"),
        (diverged, "new", {}, CheckpointError, "layers.1.ffn.fc1.weight"),
        (lambda: trained_stack(off=0.01), "new", {}, CheckpointError, "differs from the trained network"),
    ],
)
def test_bad_input(
    trained: Any, path: str, settings: dict[str, Any], error: type[NasExtError], value: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(error) as caught:
        convert(trained(), tmp_path / path, **settings)
    assert value in str(caught.value) and "\n" not in str(caught.value)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["mine"]
