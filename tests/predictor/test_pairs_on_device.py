"""Sums over pairs against dense matrices, forwards and backwards, and always the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import Tensor

from nas_core.predictor.nn_former.packed import Pairs
from tests.devices import close_in
from tests.predictor.accelerated import NoAtomicSums, as_accelerator  # noqa: F401 - a fixture

NODES, CHANNELS = 50, 12
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def matrix(seed: int = 0, density: float = 0.2) -> np.ndarray:
    """Rows and columns of all lengths, none among them."""
    linked = np.random.default_rng(seed).random((NODES, NODES)) < density
    linked[7], linked[:, 11] = False, False
    return linked


def pairs_of(linked: np.ndarray, device: str) -> Pairs:
    return Pairs.of(csr_array(linked.astype(np.int32)), device)


def with_gradients(result: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    weighting = torch.linspace(-1, 1, result.numel(), dtype=torch.float64).view(result.shape)
    return result, *torch.autograd.grad((result * weighting.to(result)).sum(), inputs)


def given(device: str, kind: torch.dtype, count: int = 1) -> list[Tensor]:
    torch.manual_seed(0)
    drawn = torch.randn(count, NODES, CHANNELS).to(kind)
    return [x.to(device).requires_grad_() for x in drawn]


@pytest.mark.parametrize("precision", TYPES)
def test_sums(device: str, precision: str) -> None:
    linked, (x,) = matrix(), given(device, TYPES[precision])
    with NoAtomicSums():
        ours = with_gradients(pairs_of(linked, device).sum(x), x)
    wide = x.detach().cpu().double().requires_grad_()
    expected = with_gradients(torch.from_numpy(linked).double() @ wide, wide)
    for a, b in zip(ours, expected, strict=True):
        close_in(precision, a, b)


def attended(linked: np.ndarray, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = (q @ k.T / CHANNELS**0.5).masked_fill(~torch.from_numpy(linked), float("-inf"))
    return torch.softmax(scores, -1) @ v


@pytest.mark.parametrize("precision", TYPES)
@pytest.mark.parametrize("scale", [1.0, 40.0])
@pytest.mark.usefixtures("as_accelerator")
def test_attention(device: str, precision: str, scale: float) -> None:
    linked = matrix() | np.eye(NODES, dtype=bool)
    q, k, v = given(device, TYPES[precision], 3)
    q = (q.detach() * scale).requires_grad_()
    with NoAtomicSums():
        ours = with_gradients(pairs_of(linked, device).attend(q, k, v, 0.0), q, k, v)
    wide = [x.detach().cpu().double().requires_grad_() for x in (q, k, v)]
    expected = with_gradients(attended(linked, *wide), *wide)
    for a, b in zip(ours, expected, strict=True):
        close_in(precision, a, b, times=4 * scale)


def test_dropout_leaves_out_and_scales(device: str) -> None:
    """The mean of many draws is what there is without, and a gradient goes where its value went."""
    linked = matrix() | np.eye(NODES, dtype=bool)
    pairs, (q, k, v) = pairs_of(linked, device), given(device, torch.float32, 3)
    plain = pairs.attend(q, k, v, 0.0).detach()
    drawn = torch.stack([pairs.attend(q, k, v, 0.25).detach() for _ in range(400)])
    assert float((drawn.mean(0) - plain).abs().mean()) < 0.1 * float(plain.abs().mean())
    torch.manual_seed(3)
    output = pairs.attend(q, k, v, 0.25)
    (of_v,) = torch.autograd.grad(output.sum(), v)
    torch.manual_seed(3)
    step = torch.full_like(v, 1e-2)
    moved = pairs.attend(q, k, v + step, 0.25)
    torch.testing.assert_close((moved - output).sum(), (of_v * step).sum(), rtol=1e-3, atol=1e-3)


def test_no_pairs_at_all(device: str) -> None:
    pairs, (x,) = pairs_of(np.zeros((NODES, NODES), bool), device), given(device, torch.float32)
    sums, gradient = with_gradients(pairs.sum(x), x)
    assert not sums.any() and not gradient.any()
