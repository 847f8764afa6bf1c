"""Tests of what runs on any device: one code, which always runs on the CPU and on CUDA where there is one.

A test that takes the fixture ``device`` (or ``second_device``) belongs in a file ``test_*_on_device.py``, which imports
nothing that a plain machine with torch, numpy and pytest lacks, or skips with ``pytest.importorskip``: ``make
test-cuda`` collects those files alone, so that they run where this project is not installed.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

__all__ = ["PRECISIONS", "close_in", "cuda_devices", "device", "gradients_close", "second_device"]

PRECISIONS = ("fp32", "tf32", "bf16", "fp16")

TOLERANCES = {
    # relative to the largest value: mantissas of 24, 11, 8 and 11 bits, some hundred summands
    "fp32": 1e-5,
    "tf32": 5e-3,
    "bf16": 4e-2,
    "fp16": 5e-3,
}


def cuda_devices() -> int:
    """Number of CUDA devices of this machine."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def _cuda(name: str, needed: int) -> object:
    missing = cuda_devices() < needed
    reason = "no CUDA device here" if needed == 1 else f"{cuda_devices()} CUDA devices here, {needed} are needed"
    return pytest.param(name, marks=[pytest.mark.device, pytest.mark.cuda, pytest.mark.skipif(missing, reason=reason)])


_CPU = pytest.param("cpu", marks=pytest.mark.device)


@pytest.fixture(params=[_CPU, _cuda("cuda", 1)])
def device(request: pytest.FixtureRequest) -> str:
    """``cpu``, and ``cuda`` where there is one."""
    return str(request.param)


@pytest.fixture(params=[_CPU, _cuda("cuda:1", 2)])
def second_device(request: pytest.FixtureRequest) -> str:
    """A device that is not torch's current one, ``cuda:1``; on the CPU, which has no second, the CPU."""
    return str(request.param)


def close_in(precision: str, actual: Tensor, expected: Tensor, times: float = 1.0) -> None:
    """Assert that a result in a precision is the float32 (or float64) one, as far as that precision can tell."""
    assert actual.shape == expected.shape and torch.isfinite(actual).all()
    expected = expected.detach().cpu().double()
    allowed = times * TOLERANCES[precision] * max(float(expected.abs().max()), 1e-6)
    difference = float((actual.detach().cpu().double() - expected).abs().max())
    assert difference <= allowed, f"{precision}: off by {difference:.2e}, allowed {allowed:.2e}"


def gradients_close(got: Mapping[str, Tensor], expected: Mapping[str, Tensor], allowed: float) -> None:
    """Assert that the same parameters have gradients, which as one vector are off by less than that share of its norm:
    single numbers pass through many layers. ``loss`` is ignored."""
    assert got.keys() == expected.keys()
    names = [name for name in expected if name != "loss"]
    mine, full = (torch.cat([each[name].cpu().double().flatten() for name in names]) for each in (got, expected))
    assert torch.isfinite(mine).all() and float((mine - full).norm() / full.norm()) < allowed
