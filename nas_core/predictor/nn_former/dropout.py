"""Dropout whose mask comes from bytes: on a CPU torch draws one number per element, which takes 40 % of a training
step."""

from __future__ import annotations

import math
import struct

import torch
from torch import Tensor
from torch.nn import functional

_BITS = {
    torch.bfloat16: torch.int16,
    torch.float16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}

__all__ = ["dropout", "keep_mask", "relu_dropout", "scaled_mask"]


def dropout(x: Tensor, probability: float, training: bool) -> Tensor:
    """Zero each element with that probability and scale the others, so that the mean stays.

    On a CPU the probability is rounded to a multiple of 1/256.
    """
    if not training or not probability:
        return x
    if x.device.type != "cpu":
        return functional.dropout(x, probability)
    return x * keep_mask(x.shape, probability, x.dtype)


def relu_dropout(x: Tensor, probability: float, training: bool) -> Tensor:
    """Dropout of relu(x), whose backward pass is one product."""
    if not training or not probability or x.device.type != "cpu":
        return dropout(functional.relu(x), probability, training)
    bits = x.detach().contiguous().view(_BITS[x.dtype])
    return x * keep_mask(x.shape, probability, x.dtype, bits.clamp(0, 1).neg_())


def scaled_mask(shape: torch.Size, probability: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """0 where an element is dropped, else the scale of those that stay; on any device."""
    if device.type == "cpu":
        return keep_mask(shape, probability, dtype)
    return torch.empty(shape, dtype=dtype, device=device).bernoulli_(1 - probability).div_(1 - probability)


def keep_mask(shape: torch.Size, probability: float, dtype: torch.dtype, where: Tensor | None = None) -> Tensor:
    """0 where an element is dropped, or ``where`` is 0, else the scale of those that stay; on the CPU.

    Computed as integers of the numbers' width: comparing bytes, and making numbers of booleans, take three times as
    long.

    Args:
        where: integers of that width, all bits 1 or 0.
    """
    count, dropped, kind = shape.numel(), min(255, round(256 * probability)), _BITS[dtype]
    bytes_each = kind.itemsize
    words = math.ceil(count / bytes_each)
    drawn = torch.empty(math.ceil(words * bytes_each / 8), dtype=torch.int64).random_(-(2**63), None).view(kind)[:words]
    bits = torch.empty(bytes_each, words, dtype=kind)
    for byte, part in enumerate(bits):
        torch.bitwise_right_shift(drawn, 8 * byte, out=part)
    bits.bitwise_and_(255).sub_(dropped).bitwise_right_shift_(_sign(bits)).bitwise_not_()
    kept = bits.view(-1)[:count].view(shape)
    if where is not None:
        kept &= where
    scale = _bits_of(256 / (256 - dropped), dtype)
    return kept.bitwise_and_(scale).view(dtype)


def _sign(bits: Tensor) -> int:
    """The place of the sign bit: a number moved right by so many is all ones where it was negative, else 0."""
    return 8 * bits.dtype.itemsize - 1


def _bits_of(number: float, dtype: torch.dtype) -> int:
    """The bits of a positive number as an integer, without a tensor, which the host would wait for."""
    if dtype == torch.bfloat16:  # the upper half of float32, rounded to the nearest
        whole = _bits_of(number, torch.float32)
        return (whole + 0x7FFF + (whole >> 16 & 1)) >> 16
    number_as, integer = {torch.float16: ("e", "h"), torch.float32: ("f", "i"), torch.float64: ("d", "q")}[dtype]
    return int(struct.unpack(f"={integer}", struct.pack(f"={number_as}", number))[0])
