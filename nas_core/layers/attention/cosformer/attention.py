"""The one way in: cosFormer attention in the form that suits the device."""

from __future__ import annotations

import torch
from torch import Tensor

from nas_core.errors import ConfigError, unknown_choice
from nas_core.layers.attention.cosformer.checks import check
from nas_core.layers.attention.cosformer.chunked import chunked_sums
from nas_core.layers.attention.cosformer.dense import dense_attention
from nas_core.layers.attention.cosformer.fla import fla_sums
from nas_core.layers.attention.cosformer.forms import FORMS, chosen_form, has_fla
from nas_core.layers.attention.cosformer.naive import cosformer_naive
from nas_core.layers.attention.cosformer.normalize import EPS, finished, working_dtype
from nas_core.layers.attention.cosformer.positions import own_scale, turns
from nas_core.layers.attention.cosformer.streaming import streamed
from nas_core.layers.attention.packed import padded, unpadded
from nas_core.layers.modes import is_exporting, without_autocast


def cosformer_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    max_length: int | None,
    causal: bool = False,
    key_mask: Tensor | None = None,
    query_positions: Tensor | None = None,
    key_positions: Tensor | None = None,
    normalize: str = "denominator",
    form: str = "auto",
    eps: float = EPS,
    bounded: bool = False,
) -> Tensor:
    """Linear attention with cosine reweighting (Qin et al. 2022, "cosFormer: Rethinking Softmax in Attention").

    ``o_i = sum_j s_ij v_j / max(sum_j s_ij, eps)``, ``s_ij = relu(q_i) relu(k_j)ᵀ cos(pi/2 (i - j) / M)``, in time
    linear in the length. What the cosine does depends on M: close to the length of a sequence it weighs near positions
    more than far ones, far above it nothing is weighed (at M = 512 the output for 30 tokens changes by 0.08 %, at 30 by
    a quarter). The authors' code takes M from each call, so that a model decodes with other weights than it was trained
    with. Here attention that sees the whole sequence takes its own length (``max_length=None``), and what decodes
    takes one number for the life of a model.

    Args:
        q: queries ``(B, H, T, D)``.
        k: keys ``(B, H, S, D)``.
        v: values ``(B, H, S, Dv)``.
        max_length: M, at least T and S; or None: the number of tokens of each sequence, for attention of a sequence
            over itself that is not causal.
        causal: each position reads itself and earlier ones; T = S.
        key_mask: ``(B, S)`` bool, True at tokens; other keys are left out exactly.
        query_positions: ``(T,)`` or ``(B, T)``, default 0, 1, ..; not with ``causal``. Positions of queries and keys
            are below ``max_length``.
        key_positions: ``(S,)`` or ``(B, S)``.
        normalize: ``denominator``, or ``rms`` or ``layer`` over each head's channels instead.
        form: one of :data:`FORMS`; they compute the same. ``fla`` is of causal attention, other attention is computed
            by plain products there; its kernels multiply float32 in TF32.
        eps: smallest denominator.
        bounded: promises that positions lie in 0 .. ``max_length`` - 1. Without it they are read and checked on the
            CPU; on other devices reading them would wait for the device at each call, and nobody does.

    Returns:
        ``(B, H, T, Dv)``, of the type of ``q``; sums are in float32 also for halves.

    Raises:
        ConfigError: shapes that do not fit, a sequence longer than ``max_length``, positions with ``causal``, no
            ``max_length`` where one is needed, ``fla`` without CUDA.
        MissingHostError: ``fla`` without the package.
        UnknownChoiceError: no such form or normalisation.
    """
    if form not in FORMS:
        raise unknown_choice("form of linear attention", form, FORMS)
    check(q, k, v, max_length, causal, key_mask, normalize, (query_positions, key_positions), bounded)
    if causal and (query_positions is not None or key_positions is not None):
        raise ConfigError("positions cannot be chosen in causal linear attention, where both sides count from 0")
    if form == "naive":
        return cosformer_naive(
            q, k, v, max_length=max_length, causal=causal, key_mask=key_mask, query_positions=query_positions,
            key_positions=key_positions, normalize=normalize, eps=eps,
        )  # fmt: skip
    exporting = is_exporting() or torch.onnx.is_in_onnx_export()
    if form == "auto":
        lengths = q.shape[2], k.shape[2]
        fla = q.is_cuda and causal and has_fla()
        form = chosen_form(q.device.type, q.dtype, *lengths, causal, q.shape[3], fla, exporting)
    if form == "streaming" and (exporting or torch.compiler.is_compiling()):
        form = "chunked"  # neither follows an autograd function of ours
    length_is_open = isinstance(q.shape[2], torch.SymInt)
    if exporting and causal and length_is_open:
        form = "dense"  # a number of blocks is what exporters cannot prove for every length
    kind = working_dtype(q)
    if max_length is None:
        query = key = turns(*own_scale(k, key_mask), kind)
    else:
        query = turns(_positions(query_positions, q), max_length, kind)
        key = turns(_positions(key_positions, k), max_length, kind)
    with without_autocast(q):
        if form == "streaming":
            return streamed(q, k, v, query, key, key_mask, max_length, causal, normalize, eps)
        if form == "dense":
            return dense_attention(q, k, v, query, key, key_mask, causal, normalize, eps)
        compute = fla_sums if form == "fla" and causal else chunked_sums
        sums, weights = compute(q, k, v, query, key, key_mask, max_length, causal)
        return finished(sums, weights, normalize, eps).to(q.dtype)


def _positions(given: Tensor | None, x: Tensor) -> Tensor:
    return torch.arange(x.shape[2], device=x.device) if given is None else given


def cosformer_packed(
    q: Tensor, k: Tensor, v: Tensor, offsets: Tensor, *, max_length: int | None, causal: bool = False, **options: object
) -> Tensor:
    """Self-attention of sequences of different lengths one behind the other, without padding in memory outside.

    Args:
        q: ``(L, H, D)``, all positions of all sequences; so are ``k`` and ``v``.
        offsets: ``(B + 1,)``, where each sequence begins, and L.
        max_length: as in :func:`cosformer_attention`; None: each sequence's own length.
        options: of :func:`cosformer_attention`.

    Returns:
        ``(L, H, Dv)``.

    Raises:
        ConfigError: offsets that do not ascend from 0 to L.
    """
    tables, mask, at = padded(offsets, q, k, v)
    filled = cosformer_attention(
        *tables,
        max_length=max_length,
        causal=causal,
        key_mask=mask,
        **options,  # type: ignore[arg-type]
    )
    return unpadded(filled, at)
