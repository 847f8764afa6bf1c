"""Numeric precision in which networks compute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from nas_core.errors import ConfigError, unknown_choice

PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
"""``fp32``: float32. ``tf32``: float32 with TF32 matrix products, on NVIDIA GPUs from Ampere on. ``bf16``, ``fp16``:
16-bit torch autocast."""

_HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_AMPERE = (8, 0)


def check_precision(precision: str, device: torch.device | str) -> str:
    """Return the precision after checking that the device supports it.

    Raises:
        ConfigError: the device does not support the precision.
    """
    if precision not in PRECISIONS:
        raise unknown_choice("precision", precision, PRECISIONS)
    device = torch.device(device)
    if precision == "tf32" and device.type != "cuda":
        raise ConfigError(f"precision tf32 needs an NVIDIA GPU, but the device is {device}; give fp32, or device cuda")
    if precision in ("tf32", "bf16") and device.type == "cuda":
        capability = torch.cuda.get_device_capability(device)
        if capability < _AMPERE:
            raise ConfigError(
                f"{torch.cuda.get_device_name(device)} has compute capability {capability[0]}.{capability[1]}, but"
                f" {precision} needs 8.0; give fp32 or fp16"
            )
    return precision


def half_type(precision: str) -> torch.dtype | None:
    return _HALVES.get(precision)


@contextmanager
def computing_in(precision: str, device: torch.device | str) -> Iterator[None]:
    """Compute in one of :data:`PRECISIONS` inside the block, by autocast or torch's TF32 setting.

    Weights keep their types. On a device without TF32, ``tf32`` computes in fp32.
    """
    half = half_type(precision)
    with tf32(precision == "tf32"), torch.autocast(torch.device(device).type, half, enabled=half is not None):
        yield


@contextmanager
def tf32(enabled: bool) -> Iterator[None]:
    try:
        before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    except RuntimeError:  # torch >= 2.9, if the newer settings were used
        with _tf32_by_operation(enabled):
            yield
        return
    torch.set_float32_matmul_precision("high" if enabled else "highest")
    torch.backends.cudnn.allow_tf32 = enabled
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]


@contextmanager
def _tf32_by_operation(enabled: bool) -> Iterator[None]:
    settings: list[Any] = [torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn]  # type: ignore[attr-defined]
    before = [setting.fp32_precision for setting in settings]
    for setting in settings:
        setting.fp32_precision = "tf32" if enabled else "ieee"
    try:
        yield
    finally:
        for setting, value in zip(settings, before, strict=True):
            setting.fp32_precision = value
