"""Products of features of halves, on tensor cores, without leaving the range of the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nas_core.layers.attention.cosformer.normalize import working_dtype
from nas_core.precision import tf32


def multiplied_in(x: Tensor) -> torch.dtype:
    """The type of the factors: that of bfloat16, float32 and float64 inputs, and float32 for float16.

    Sums over thousands of positions leave float16's range, and their gradients fall below it.
    """
    return torch.bfloat16 if x.dtype == torch.bfloat16 else working_dtype(x)


def running_sums(x: Tensor, dim: int, exact: torch.dtype) -> Tensor:
    """Sums up to each position, in the type ``exact`` also in the backward pass, where ``cumsum(dtype=)`` adds up in
    the type of its input: on CUDA a sum of bfloat16 stands still from 256 on."""
    return x.to(exact).cumsum(dim)


def multiply_for(x: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """The matrix product of factors made from inputs like ``x``: torch's own, or in TF32 for float16 on CUDA.

    TF32 has float16's 10 bits of mantissa and float32's range: inputs lose nothing, sums and gradients that are factors
    again are rounded to as many bits as those of float16. float32 inputs follow torch's setting.
    """
    if x.dtype != torch.float16 or not x.is_cuda or torch.compiler.is_compiling():
        return torch.matmul
    return _in_tf32


def _in_tf32(a: Tensor, b: Tensor) -> Tensor:
    product: Tensor = _TF32Product.apply(a, b)  # type: ignore[no-untyped-call]
    return product


class _TF32Product(torch.autograd.Function):
    """``a @ b`` of equal batch dimensions, in TF32 in both passes, whatever torch's setting is at the time of each."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        with tf32(True):
            return a @ b

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        (grad,) = grads
        a, b = ctx.saved_tensors
        with tf32(True):
            return (
                grad @ b.mT if ctx.needs_input_grad[0] else None,
                a.mT @ grad if ctx.needs_input_grad[1] else None,
            )
