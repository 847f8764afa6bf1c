"""Least squares after pruning against numpy, and against what it must not change."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from nas_core.compression.repair import Recorded, last_replaced, refit

STREAM = torch.Generator().manual_seed(0)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=STREAM)


def batches(inputs: int, outputs: int, removed: int) -> tuple[nn.Linear, list[Recorded], list[torch.Tensor]]:
    """A layer that lost inputs correlated with the others, and the stream of the whole layer."""
    whole, mixing = nn.Linear(inputs + removed, outputs), random(inputs, removed)
    layer = nn.Linear(inputs, outputs)
    recorded, targets = [], []
    with torch.no_grad():
        layer.weight.copy_(whole.weight[:, :inputs])
        layer.bias.copy_(whole.bias)
        for _ in range(8):
            x, residual = random(40, inputs), random(40, outputs)
            both = torch.cat([x, x @ mixing + 0.1 * random(40, removed)], 1)
            recorded.append(Recorded(x, residual + layer(x)))
            targets.append(residual + whole(both))
    return layer, recorded, targets


def error(layer: nn.Linear, before: nn.Linear, recorded: list[Recorded], targets: list[torch.Tensor]) -> float:
    with torch.no_grad():
        pairs = zip(recorded, targets, strict=True)
        return sum(float((r.stream - before(r.inputs) + layer(r.inputs) - y).square().sum()) for r, y in pairs)


def test_refit_is_the_ridge_regression_of_numpy() -> None:
    layer, recorded, targets = batches(6, 4, 3)
    weight, bias = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
    refit(layer, recorded, targets, [1e-3])
    fitted = [
        (r.inputs.double().numpy(), (y - r.stream).double().numpy()) for r, y in zip(recorded, targets, strict=True)
    ][2:]
    x, y = (np.concatenate(column) for column in zip(*fitted, strict=True))
    centred = x - x.mean(0)
    gram = centred.T @ centred
    change = np.linalg.solve(gram + 1e-3 * np.diag(gram).mean() * np.eye(6), centred.T @ (y - y.mean(0))).T
    np.testing.assert_allclose(layer.weight.detach().numpy(), weight + change, atol=1e-5)
    np.testing.assert_allclose(layer.bias.detach().numpy(), bias + y.mean(0) - change @ x.mean(0), atol=1e-5)


def test_refit_makes_up_for_removed_inputs() -> None:
    layer, recorded, targets = batches(6, 4, 3)
    before = nn.Linear(6, 4)
    before.load_state_dict(layer.state_dict())
    refit(layer, recorded, targets, [1e-3])
    assert error(layer, before, recorded, targets) < 0.05 * error(before, before, recorded, targets)


def test_refit_is_safe_with_constant_and_equal_inputs() -> None:
    layer, recorded, targets = batches(6, 4, 3)
    for record in recorded:
        record.inputs[:, 1] = 2.0
        record.inputs[:, 2] = record.inputs[:, 3]
    refit(layer, recorded, targets, [1e-3])
    assert layer.weight.isfinite().all() and layer.weight.abs().max() < 50


def test_a_change_that_is_worse_on_held_out_batches_is_dropped() -> None:
    layer, recorded, _ = batches(30, 4, 3)
    noise = [r.stream[:3] + 100 * random(3, 4) for r in recorded]
    state = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    refit(layer, [Recorded(r.inputs[:3], r.stream[:3]) for r in recorded], noise, [1e-3])
    assert all(torch.equal(layer.state_dict()[name], tensor) for name, tensor in state.items())


@pytest.mark.parametrize(("kept", "expected"), [((0, 2, 5), [1, 4, 5]), ((1,), [5]), ((4, 5), [4, 5])])
def test_a_kept_layer_replaces_those_before_the_next(kept: tuple[int, ...], expected: list[int]) -> None:
    assert last_replaced(kept, 6) == expected
