"""The guard sees what makes the host wait, and nothing else; a block that reads fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.host_reads import HostReadError, host_reads, no_host_reads

READS: dict[str, Callable[[Tensor], object]] = {
    "item": lambda x: x.sum().item(),
    "float": lambda x: float(x.max()),
    "int": lambda x: int(x.max()),
    "bool": lambda x: bool((x > 0).any()),
    "equal": lambda x: torch.equal(x, x + 1),
    "nonzero": lambda x: x.nonzero(),
    "index by a mask": lambda x: x[x > 0],
    "put by a mask": lambda x: x.clone().index_put_((x > 0,), x[:1].expand(4)),
    "masked_select": lambda x: x.masked_select(x > 0),
    "unique": lambda x: x.unique(),
    "repeat_interleave": lambda x: x.repeat_interleave(x.long()),
}
FREE: dict[str, Callable[[Tensor], object]] = {
    "arithmetic": lambda x: (x @ x).exp().clamp(min=0.5),
    "index by positions": lambda x: x[torch.arange(2, device=x.device)],
    "fill by a mask": lambda x: x.masked_fill(x > 2, 0),
    "where": lambda x: torch.where(x > 2, x, -x),  # a number would be copied there, and waited for
    "repeat_interleave": lambda x: x.repeat_interleave(2),
    "shapes": lambda x: x.numel() + len(x),
}


def numbers(device: str) -> Tensor:
    return torch.arange(1, 5, device=device).float()


@pytest.mark.parametrize("name", READS)
def test_reading_is_forbidden_and_counted(name: str, device: str) -> None:
    x = numbers(device)
    with pytest.raises(HostReadError), no_host_reads(device):
        READS[name](x)
    with host_reads(device) as found:
        READS[name](x)
    assert found


@pytest.mark.parametrize("name", FREE)
def test_what_stays_on_the_device_is_free(name: str, device: str) -> None:
    x = numbers(device)
    with no_host_reads(device):
        FREE[name](x)
    with host_reads(device) as found:
        FREE[name](x)
    assert found == []


def test_each_read_counts(device: str) -> None:
    x = numbers(device)
    with host_reads(device) as found:
        for each in x.unbind():
            each.item()
    assert len(found) == 4


class _ReadsBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        return x * 2

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        return grad * grad.sum().item()


def test_the_backward_pass_is_seen(device: str) -> None:
    x = numbers(device).requires_grad_()
    loss = _ReadsBackward.apply(x).sum()
    with pytest.raises(HostReadError), no_host_reads(device):
        loss.backward()


def test_other_errors_pass_and_afterwards_all_is_as_before(device: str) -> None:
    with pytest.raises(RuntimeError, match="else") as raised, no_host_reads(device):
        raise RuntimeError("something else")
    assert not isinstance(raised.value, HostReadError)
    assert numbers(device).sum().item() == 10


@pytest.mark.parametrize(
    ("compute", "waits"),
    [
        (lambda x: x.to(x.device), True),
        (lambda x: x.to(device=x.device, dtype=torch.half), True),
        (lambda x: torch.tensor([1.0], device=x.device), True),
        (lambda x: torch.as_tensor([1.0], device=x.device), True),
        (lambda x: x.to(x.device, non_blocking=True), False),
        (lambda x: x.to(torch.half), False),
        (lambda x: torch.as_tensor(x, device=x.device), False),
        (lambda x: torch.zeros(2, device=x.device), False),
    ],
)
def test_copies_to_a_named_device_are_found_on_the_cpu(compute: Callable[[Tensor], Tensor], waits: bool) -> None:
    """On CUDA torch tells which of them copy."""
    with host_reads("cpu", copies=True) as found:
        compute(torch.ones(2))
    assert found == (["copy to a device"] if waits else [])
    with no_host_reads("cpu"):
        compute(torch.ones(2))
