"""In which numbers networks compute."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from nas_core.precision import check_precision, computing_in, half_type, tf32
from tests.devices import PRECISIONS, close_in
from tests.toys import ROOT


def settings() -> tuple[str, bool]:
    return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32


@pytest.mark.parametrize("precision", PRECISIONS)
def test_products_are_near_those_in_float64(device: str, precision: str) -> None:
    generator = torch.Generator().manual_seed(0)
    first, two = (torch.randn(128, 128, generator=generator) for _ in range(2))
    before = settings()
    with computing_in(precision, device):
        product = first.to(device) @ two.to(device)
    assert settings() == before
    assert product.dtype == (half_type(precision) or torch.float32)
    close_in(precision, product, first.double() @ two.double())


def test_float32_is_told_from_tf32(device: str) -> None:
    x = torch.full((256, 256), 1 + 2**-12, device=device)  # TF32 has 10 bits of mantissa and rounds this to 1
    with computing_in("fp32", device):
        exact = x @ x
    with computing_in("tf32", device):
        product = x @ x
    assert abs(float(exact[0, 0]) - 256 * (1 + 2**-12) ** 2) < 1e-3
    has_tf32 = device != "cpu" and torch.cuda.get_device_capability(device) >= (8, 0)
    assert (float(product[0, 0]) == 256) == has_tf32


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_what_a_device_computes_in(device: str, precision: str) -> None:
    assert check_precision(precision, device) == precision


def test_settings_come_back_after_an_error(device: str) -> None:
    before = settings()
    with pytest.raises(ZeroDivisionError), computing_in("tf32", device), tf32(False):
        assert settings() == ("highest", False)
        raise ZeroDivisionError
    assert settings() == before


@pytest.mark.skipif(
    not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="this torch has one way to set it"
)
@pytest.mark.parametrize("device", ["cpu"])
def test_settings_of_torch_that_exclude_the_former_ones(device: str) -> None:
    """In a process of its own: torch allows no way back."""
    program = """
import torch
from nas_core.precision import computing_in
places = torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn
places[0].fp32_precision = "tf32"
before = [each.fp32_precision for each in places]
with computing_in("fp32", "cpu"):
    assert {each.fp32_precision for each in places} == {"ieee"}
with computing_in("tf32", "cpu"):
    assert {each.fp32_precision for each in places} == {"tf32"}
assert [each.fp32_precision for each in places] == before
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
