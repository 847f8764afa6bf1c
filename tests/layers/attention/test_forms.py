"""Which form computes linear attention, how a network asks for one, and what the host reads of positions."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch
from torch import Tensor

from nas_core.layers.attention.cosformer import cosformer_naive
from nas_core.layers.attention.cosformer.common import EPS, cos_table, normalized
from nas_core.layers.attention.cosformer.forms import FORMS, chosen_form, fla_sums

F32, F16, BF16, F64 = torch.float32, torch.float16, torch.bfloat16, torch.float64
ROWS = [
    # device, type, queries, keys, causal, head dim, fla is there, exporting
    (("cpu", F32, 30, 30, True, 64, True, False), "streaming"),
    (("cpu", BF16, 8192, 8192, True, 64, True, False), "streaming"),
    (("cpu", F32, 30, 30, False, 64, True, True), "chunked"),
    (("cuda", BF16, 30, 30, True, 64, True, True), "chunked"),
    (("cuda", F32, 256, 256, True, 64, False, False), "dense"),
    (("cuda", F32, 257, 257, True, 64, False, False), "chunked"),
    (("cuda", BF16, 197, 197, False, 64, True, False), "dense"),
    (("cuda", BF16, 256, 256, False, 32, True, False), "chunked"),
    (("cuda", F32, 200, 9000, False, 64, False, False), "chunked"),
    (("cuda", F32, 1, 9000, False, 64, False, False), "dense"),
    (("cuda", F16, 100, 150, False, 64, False, False), "dense"),
    (("cuda", BF16, 1023, 1023, True, 64, True, False), "chunked"),
    (("cuda", BF16, 1024, 1024, True, 64, True, False), "fla"),
    (("cuda", F16, 4096, 4096, True, 64, True, False), "fla"),
    (("cuda", BF16, 4096, 4096, True, 64, False, False), "chunked"),
    (("cuda", BF16, 4096, 4096, False, 64, True, False), "chunked"),
    (("cuda", F32, 4096, 4096, True, 64, True, False), "chunked"),
    (("cuda", F64, 4096, 4096, True, 64, True, False), "chunked"),
]


@pytest.mark.parametrize(("where", "form"), ROWS)
def test_the_table(where: tuple[str, torch.dtype, int, int, bool, int, bool, bool], form: str) -> None:
    assert chosen_form(*where) == form
    assert form in FORMS


def inputs(length: int = 12, dtype: torch.dtype = F32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, 3, length, 8, generator=generator).to(dtype) for _ in range(3)]


@pytest.mark.parametrize(("dtype", "handed"), [(F32, F32), (BF16, BF16), (F16, F32)])
def test_what_is_handed_to_flash_linear_attention(
    dtype: torch.dtype, handed: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its contract, played by a twin: ``(B, T, H, ..)``, undivided, scale 1; float16 goes as float32."""

    def chunk_linear_attn(q: Tensor, k: Tensor, v: Tensor, scale: float, normalize: bool) -> tuple[Tensor, None]:
        assert q.dtype == k.dtype == v.dtype == handed and scale == 1.0 and not normalize
        assert q.shape == k.shape == (2, 40, 3, 16) and v.shape == (2, 40, 3, 8)
        assert all(x.is_contiguous() for x in (q, k, v))
        weights = torch.einsum("bthd,bshd->bhts", q.float(), k.float()).tril()
        return torch.einsum("bhts,bshd->bthd", weights, v.float()).to(v.dtype), None

    module = ModuleType("fla.ops.linear_attn")
    module.chunk_linear_attn = chunk_linear_attn  # type: ignore[attr-defined]
    for name, each in (("fla", ModuleType("fla")), ("fla.ops", ModuleType("fla.ops")), (module.__name__, module)):
        monkeypatch.setitem(sys.modules, name, each)
    q, k, v = inputs(40, dtype)
    mask = torch.ones(2, 40, dtype=torch.bool)
    mask[1, 30:] = False
    at = cos_table(torch.arange(40), 50, F32)
    monkeypatch.setattr(Tensor, "is_cuda", True)
    sums, weights = fla_sums(q, k, v, at, at, mask, 50, True)
    monkeypatch.undo()
    assert sums.dtype == weights.dtype == F32
    got = normalized(sums, weights, "denominator", EPS)
    expected = cosformer_naive(q.float(), k.float(), v.float(), max_length=50, causal=True, key_mask=mask)
    tolerance = 3e-2 if dtype == BF16 else 1e-5
    torch.testing.assert_close(got, expected, atol=tolerance, rtol=tolerance)
