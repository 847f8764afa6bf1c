"""Linear attention in every form and precision that a device has, against the definition in float64 on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nas_core.layers.attention.cosformer import cosformer_attention
from nas_core.layers.attention.cosformer.forms import FORMS
from nas_core.layers.attention.cosformer.kind import CosformerState
from nas_core.precision import computing_in, half_type
from tests.devices import PRECISIONS, close_in
from tests.host_reads import no_host_reads
from tests.naive import cosformer_naive

DIM = 32
CASES = {
    # queries, keys, causal, max_length
    "causal, odd": (333, 333, True, 400),
    "causal, long": (520, 520, True, 2000),
    "two positions": (2, 2, True, 9),
    "all keys": (600, 600, False, 700),
    "own length": (145, 145, False, None),
    "across, few queries": (3, 300, False, 301),
    "across, few keys": (300, 7, False, 301),
}


def made(queries: int, keys: int, precision: str, device: str) -> list[Tensor]:
    """On the device, as projections leave them: not contiguous, of the half type where there is one."""
    generator = torch.Generator().manual_seed(queries + keys)
    split = [torch.randn(2, length, 3, DIM, generator=generator) for length in (queries, keys, keys)]
    half = half_type(precision) or torch.float32
    return [x.to(device, half).transpose(1, 2).detach().requires_grad_() for x in split]


def with_gradients(compute: object, tensors: list[Tensor], weighting: Tensor, **options: object) -> list[Tensor]:
    y = compute(*tensors, **options)  # type: ignore[operator]
    return [y.detach(), *torch.autograd.grad((y * weighting.to(y)).sum(), tensors)]


@pytest.mark.parametrize("masked", [False, True], ids=["", "padded"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_outputs_and_gradients(precision: str, case: str, masked: bool, device: str) -> None:
    """No form is off by more than its numbers, none makes the host wait, and each gives the type it was given."""
    queries, keys, causal, longest = CASES[case]
    tensors = made(queries, keys, precision, device)
    mask = None
    if masked:
        mask = torch.arange(keys)[None] < torch.tensor([[keys], [max(1, keys // 3)]])
    kept = torch.ones(2, queries, dtype=torch.bool) if mask is None or causal or queries != keys else mask
    weighting = torch.randn(2, 3, queries, DIM, generator=torch.Generator().manual_seed(9)) * kept[:, None, :, None]
    options = {"max_length": longest, "causal": causal}
    exact = [x.detach().cpu().double().requires_grad_() for x in tensors]
    expected = with_gradients(cosformer_naive, exact, weighting.double(), key_mask=mask, **options)
    on_device = None if mask is None else mask.to(device)
    weighting = weighting.to(device)
    for form in FORMS:
        with computing_in("tf32" if precision == "tf32" else "fp32", device), no_host_reads(device, copies=True):
            got = with_gradients(cosformer_attention, tensors, weighting, key_mask=on_device, form=form, **options)
        got[0] = torch.where(kept[:, None, :, None].to(device), got[0], 0)
        reference = torch.where(kept[:, None, :, None], expected[0].detach(), 0)
        for a, b in zip(got, [reference, *expected[1:]], strict=True):
            assert a.dtype == tensors[0].dtype
            close_in(precision, a, b, times=4)


@pytest.mark.parametrize("causal", [False, True])
def test_sums_beyond_the_range_of_float16(causal: bool, device: str) -> None:
    """Weights of 2,000 positions add up to a million: outputs and gradients stay finite and right."""
    tensors = [(x.detach().abs() * 3 + 1).requires_grad_() for x in made(2000, 2000, "fp16", device)]
    weighting = torch.randn(2, 3, 2000, DIM, generator=torch.Generator().manual_seed(9))
    exact = [x.detach().cpu().double().requires_grad_() for x in tensors]
    options = {"max_length": 2000, "causal": causal}
    reference = with_gradients(cosformer_attention, exact, weighting.double(), **options, form="streaming")
    for form in ("auto", "streaming", "chunked"):
        got = with_gradients(cosformer_attention, tensors, weighting.to(device), form=form, **options)
        for a, b in zip(got, reference, strict=True):
            close_in("fp16", a, b, times=16)  # gradients of streaming come from outputs rounded to float16


@pytest.mark.parametrize("precision", PRECISIONS)
def test_decoding_equals_the_whole_sequence(precision: str, device: str) -> None:
    """Step by step with beams that move, without the host waiting in any step; and a memory that is read."""
    q, k, v = (x.detach() for x in made(70, 70, precision, device))
    exact = [x.cpu().double() for x in (q, k, v)]
    full = cosformer_naive(*exact, max_length=71, causal=True)
    order = torch.tensor([1, 0], device=device)
    moved = order.cpu()
    with computing_in("tf32" if precision == "tf32" else "fp32", device):
        state = CosformerState.empty(k, DIM, 71)
        for position in range(70):
            current = slice(position, position + 1)
            with no_host_reads(device, copies=True):
                if position % 30 == 29:
                    state, q, k, v = (x.reorder(order) if isinstance(x, CosformerState) else x.index_select(0, order)
                                      for x in (state, q, k, v))  # fmt: skip
                y = state.step(q[:, :, current], k[:, :, current], v[:, :, current])
            full = full[moved] if position % 30 == 29 else full
            close_in(precision, y, full[:, :, current], times=4)
        memory = CosformerState.of(k, v, 71)
        read = torch.cat([memory.read(q[:, :, i : i + 1], i) for i in range(70)], 2)
    expected = cosformer_naive(*(x.cpu().double() for x in (q, k, v)), max_length=71)
    close_in(precision, read, expected, times=4)
