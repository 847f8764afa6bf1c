"""All forms of cosFormer attention against the equations, and rejected inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC2701

from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.layers.attention import LinearAttention
from nas_core.layers.attention.cosformer import cosformer_attention
from nas_core.layers.attention.cosformer.kind import CosformerState
from tests.naive import cosformer_naive

FORMS = ("streaming", "chunked", "dense")
M = 301


def inputs(target: int, source: int, dtype: torch.dtype = torch.double, dim: int = 6) -> list[Tensor]:
    torch.manual_seed(target * 1000 + source)
    shapes = ((2, 3, target, dim), (2, 3, source, dim), (2, 3, source, 5))
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def test_the_definition_itself() -> None:
    """One row by hand: positions 0 and 1, M = 4, angle pi / 8 between them."""
    q, k = torch.tensor([[[[1.0, -2.0], [2.0, 1.0]]]]), torch.tensor([[[[3.0, 1.0], [-1.0, 2.0]]]])
    v = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    first, second = 7.0 * math.cos(math.pi / 8), 2.0
    expected = torch.tensor([[1.0, 0.0], [first / (first + second), second / (first + second)]])
    torch.testing.assert_close(cosformer_naive(q, k, v, max_length=4)[0, 0], expected)
    alone = cosformer_naive(q, k, v, max_length=4, causal=True)[0, 0]
    torch.testing.assert_close(alone, expected)
    assert torch.equal(cosformer_naive(-q.abs(), k, v, max_length=4), torch.zeros_like(v))


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(
    ("target", "source", "causal"),
    [(1, 1, True), (7, 7, True), (128, 128, True), (129, 129, True), (300, 300, True), (1, 1, False), (7, 300, False),
     (300, 9, False), (257, 257, False)],
)  # fmt: skip
@pytest.mark.parametrize("form", FORMS)
def test_outputs_and_gradients_equal_the_definition(
    form: str, target: int, source: int, causal: bool, masked: bool
) -> None:
    tensors = inputs(target, source)
    mask = None
    if masked:
        mask = torch.rand(2, source) > 0.3
        mask[:, 0] = True
    weighting = torch.randn(2, 3, target, 5, dtype=torch.double)
    results = []
    for compute in (partial(cosformer_attention, form=form), cosformer_naive):
        y = compute(*tensors, max_length=M, causal=causal, key_mask=mask)
        results.append([y.detach(), *torch.autograd.grad((y * weighting).sum(), tensors)])
    for name, got, expected in zip("oqkv", *results, strict=True):
        torch.testing.assert_close(got, expected, atol=1e-9, rtol=1e-9, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("form", FORMS)
def test_positions_of_two_sequences(form: str) -> None:
    q, k, v = inputs(5, 12)
    at = torch.tensor([[0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]])
    options = {"max_length": 40, "query_positions": torch.tensor([3, 4, 9, 10, 30]), "key_positions": at}
    got = cosformer_attention(q, k, v, form=form, **options)
    torch.testing.assert_close(got, cosformer_naive(q, k, v, **options), atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_the_own_length_is_that_of_each_sequence_alone(form: str) -> None:
    """Outputs and gradients, wherever the padding is and whatever it holds."""
    q, k, v = (torch.randn(4, 3, 300, 6, dtype=torch.double, requires_grad=True) for _ in range(3))
    mask = torch.ones(4, 300, dtype=torch.bool)
    mask[1, 9:], mask[2, :263], mask[3, 1:] = False, False, False
    weighting = torch.randn(4, 3, 300, 6, dtype=torch.double) * mask[:, None, :, None]
    together = cosformer_attention(q, k, v, max_length=None, key_mask=mask, form=form)
    assert together.isfinite().all()
    got = torch.autograd.grad((together * weighting).sum(), (q, k, v))
    for row in range(4):
        kept = mask[row]
        parts = [x[row : row + 1, :, kept] for x in (q, k, v)]
        alone = cosformer_naive(*parts, max_length=int(kept.sum()))
        torch.testing.assert_close(together[row : row + 1, :, kept], alone, atol=1e-9, rtol=1e-9)
        expected = torch.autograd.grad((alone * weighting[row : row + 1, :, kept]).sum(), (q, k, v))
        for name, a, b in zip("qkv", got, expected, strict=True):
            torch.testing.assert_close(a[row], b[row], atol=1e-9, rtol=1e-9, msg=lambda m, n=name: f"{n}: {m}")


def test_later_values_do_not_reach_earlier_outputs() -> None:
    """In float32, however large they are: what rounds away of them must not come back."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 400, 8).unbind(0)
    large = v.clone()
    large[:, :, 300] *= 1e6
    for form in FORMS:
        first, second = (cosformer_attention(q, k, x, max_length=400, causal=True, form=form) for x in (v, large))
        assert torch.equal(first[:, :, :256], second[:, :, :256]), form
        torch.testing.assert_close(first[:, :, :300], second[:, :, :300])
        assert (first[:, :, 300] - second[:, :, 300]).abs().max() > 100


class Sums(TorchDispatchMode):
    """Remembers the types in which running sums were added up."""

    def __init__(self) -> None:
        super().__init__()
        self.types: set[torch.dtype] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket is torch.ops.aten.cumsum:
            self.types.add(args[0].dtype)
        return func(*args, **(kwargs or {}))


def test_running_sums_are_exact_in_both_passes() -> None:
    """On CUDA a sum of bfloat16 no longer grows from 256 on; autograd adds up gradients in the type of the input."""
    with Sums() as sums:
        tensors = [torch.randn(1, 2, 600, 4, dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
        cosformer_attention(*tensors, max_length=600, causal=True, form="chunked").sum().backward()
    assert sums.types == {torch.float32}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("causal", [False, True])
def test_float16_without_common_channels_has_finite_gradients(causal: bool, form: str) -> None:
    """A query whose weights are all 0 has a denominator of eps."""
    q, k, v = (x.half() for x in torch.randn(3, 64, 2, 12, 8, generator=torch.Generator().manual_seed(0)).unbind(0))
    q[:, :, 0] = -1
    tensors = [x.requires_grad_() for x in (q, k, v)]
    y = cosformer_attention(*tensors, max_length=12, causal=causal, form=form)
    grads = torch.autograd.grad((y.float() * 1024).square().mean(), tensors)
    assert all(torch.isfinite(x).all() for x in (y, *grads)) and all(bool(x.any()) for x in grads)


POSITIONS = torch.arange(5)
WRONG = [
    (lambda q: cosformer_attention(q, q, q[0], max_length=9), ConfigError, "(2, 3, 5, 4)"),
    (lambda q: cosformer_attention(q, q.half(), q, max_length=9), ConfigError, "float16"),
    (lambda q: cosformer_attention(q, q, q, max_length=4), ConfigError, "max_length 4"),
    (lambda q: cosformer_attention(q, q, q, max_length=9, key_mask=torch.ones(2, 5)), ConfigError, "float32"),
    (lambda q: cosformer_attention(q, q, q, max_length=9, causal=True, key_positions=POSITIONS), ConfigError, "causal"),
    (lambda q: cosformer_attention(q, q, q, max_length=9, key_positions=POSITIONS[:4]), ConfigError, "(4,)"),
    (lambda q: cosformer_attention(q, q, q, max_length=None, causal=True), ConfigError, "None"),
    (lambda q: cosformer_attention(q[:, :, :3], q, q, max_length=9, causal=True), ConfigError, "3 queries"),
    (lambda q: cosformer_attention(q, q, q, max_length=9, form="fast"), UnknownChoiceError, "fast"),
    (lambda q: LinearAttention(0), ConfigError, "0"),
    (lambda q: LinearAttention(None).step(q, q, q, None), ConfigError, "None"),
    (lambda q: CosformerState.of(q, q, 9).read(q[:, :, :1], 9), ConfigError, "position 9"),
]


@pytest.mark.parametrize(("call", "error", "value"), WRONG)
def test_wrong_inputs(call: Callable[[Tensor], object], error: type[Exception], value: str) -> None:
    with pytest.raises(error) as caught:
        call(torch.randn(2, 3, 5, 4))
    assert "\n" not in str(caught.value) and value in str(caught.value)
