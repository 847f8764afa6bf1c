"""Which form computes linear attention: by the device, the numbers and the lengths."""

from __future__ import annotations

import functools
import importlib

import torch

FORMS = ("auto", "streaming", "chunked", "dense", "fla", "naive")
"""``streaming``: blocks one after the other, in bounded memory. ``chunked``: all blocks at once, few large products.
``dense``: all pairs, for short sequences. ``fla``: causal attention by flash-linear-attention's kernels, on CUDA.
``naive``: the definition. ``auto``: what :func:`chosen_form` gives."""

FLA_FROM = 1024
"""Keys from which flash-linear-attention's kernels are taken where they are."""

_HALVES = (torch.bfloat16, torch.float16)


def chosen_form(
    device_type: str,
    dtype: torch.dtype,
    queries: int,
    keys: int,
    causal: bool,
    head_dim: int,
    has_fla: bool,
    exporting: bool,
) -> str:
    """The form that ``auto`` takes; the first row that fits.

    ======================================================================== ==========
    where                                                                    form
    ======================================================================== ==========
    an exporter follows: it knows no autograd function of ours               chunked
    not CUDA: caches are small, calls cost nothing                           streaming
    T S <= 2 D (T + S), 256 positions of D = 64: all pairs are less work     dense
    causal, bf16 or fp16, 1,024 keys or more, and the package is there       fla
    else                                                                     chunked
    ======================================================================== ==========

    float32 does not take ``fla``: its kernels multiply in TF32 whatever torch is told.
    """
    if exporting:
        return "chunked"
    if device_type != "cuda":
        return "streaming"
    if queries * keys <= 2 * head_dim * (queries + keys):
        return "dense"
    return "fla" if causal and dtype in _HALVES and keys >= FLA_FROM and has_fla else "chunked"


@functools.cache
def has_fla() -> bool:
    """Whether flash-linear-attention is installed and imports: who did not ask for it shall not fail by it."""
    try:
        importlib.import_module("fla.ops.linear_attn")
    except Exception:  # whatever the first line raises that does not suit this torch or triton
        return False
    return True
