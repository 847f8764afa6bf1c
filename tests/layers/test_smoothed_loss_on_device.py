"""The fused loss in each precision: the types of its products, its values, and gradients that halves cannot hold."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC2701

from nas_core.layers import smoothed_loss
from nas_core.layers.smoothed_loss import projected_smoothed_loss
from nas_core.precision import computing_in, half_type
from tests.devices import PRECISIONS, close_in
from tests.host_reads import no_host_reads
from tests.naive import naive_smoothed_loss

PAD, VOCAB, WIDTH, ROWS = 1, 200, 32, 300


class Products(TorchDispatchMode):
    """The types of the factors of each matrix product."""

    def __init__(self) -> None:
        super().__init__()
        self.types: list[torch.dtype] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if str(func.overloadpacket) in ("aten.mm", "aten.addmm", "aten.addmm_", "aten.bmm"):
            self.types += [each.dtype for each in args if isinstance(each, Tensor)]
        return func(*args, **(kwargs or {}))


def data(device: str, dtype: torch.dtype = torch.float) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(ROWS, WIDTH, generator=generator).to(device, dtype).requires_grad_()
    table = (torch.randn(VOCAB, WIDTH, generator=generator) * 0.3).to(device, dtype).requires_grad_()
    target = torch.randint(0, VOCAB, (ROWS,), generator=generator)
    target[::7] = PAD
    return features, table, target.to(device)


@pytest.fixture(autouse=True)
def several_chunks(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    on_cpu = "cpu" in request.node.name
    monkeypatch.setattr(smoothed_loss, "_CHUNK_ELEMENTS", 70 * VOCAB // (1 if on_cpu else 256))


@pytest.mark.parametrize("how", ["amp", "cast"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_products_values_and_gradients(precision: str, how: str, device: str) -> None:
    half = half_type(precision)
    features, table, target = data(device, half if how == "cast" and half is not None else torch.float)
    before, expected_table, _ = data("cpu")
    expected, expected_nll = naive_smoothed_loss(before, expected_table, target.cpu(), 0.1, PAD)
    (expected * 3).backward()
    autocast = precision if how == "amp" or half is None else "fp32"
    with no_host_reads(device, copies=True), Products() as products:
        with computing_in(autocast, device):
            loss, nll = projected_smoothed_loss(features, table, target, 0.1, PAD)
        (loss * 3).backward()
    assert len(products.types) >= 3 * 2 * (ROWS // 70) and set(products.types) == {half or torch.float}
    assert loss.dtype == nll.dtype == torch.float
    close_in(precision, loss, expected)
    close_in(precision, nll, expected_nll)
    for got, want in ((features, before), (table, expected_table)):
        assert got.grad is not None and want.grad is not None and got.grad.dtype == got.dtype
        close_in(precision, got.grad, want.grad, times=2)


def test_sums_of_gradients_in_float16_neither_overflow_nor_depend_on_the_number_of_chunks(device: str) -> None:
    """A scaled loss whose factor float16 does not know, and a table whose gradient is a sum over many chunks."""
    features, table, target = data(device, torch.half)
    exact = [x.detach().float().requires_grad_() for x in (features, table)]
    naive_smoothed_loss(*exact, target, 0.1, PAD)[0].backward(torch.tensor(0.25, device=device))
    loss, _ = projected_smoothed_loss(features, table, target, 0.1, PAD)
    (loss * 2.0**17 * 2.0**-19).backward()
    for got, want in zip((features, table), exact, strict=True):
        assert got.grad is not None and want.grad is not None
        close_in("fp16", got.grad, want.grad)
    loss, _ = projected_smoothed_loss(features, table, target, 0.1, PAD)
    (scaled,) = torch.autograd.grad(loss * 2.0**17, table, allow_unused=True)
    assert scaled.dtype == torch.half  # values out of range are infinite, which the scaler detects
    assert not scaled.isnan().any()
