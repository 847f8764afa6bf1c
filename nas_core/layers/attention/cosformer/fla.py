"""The sums of causal linear attention by flash-linear-attention's CUDA kernels.

They know neither the cosine nor our denominator: features of sines and cosines go in as queries and keys, undivided
sums come out, and the sums of weights are added up here, in float32. The kernels sum in float32 and round the state of
each block to the inputs' type. float16 is handed over as float32, which they multiply in TF32: the same mantissa
without the overflow of undivided sums.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.layers.attention.cosformer.normalize import working_dtype
from nas_core.layers.attention.cosformer.positions import Turns
from nas_core.layers.attention.cosformer.products import multiplied_in, running_sums
from nas_core.optional import require


def fla_sums(
    q: Tensor, k: Tensor, v: Tensor, query: Turns, key: Turns, mask: Tensor | None, max_length: int | None, causal: bool
) -> tuple[Tensor, Tensor]:
    """Compute what ``chunked_sums`` does where attention is causal; the layout of the kernels is ``(B, T, H, D)``.

    Raises:
        ConfigError: not on CUDA, or float64. MissingHostError: flash-linear-attention is not installed.
    """
    assert causal
    if not q.is_cuda:
        raise ConfigError(f"flash-linear-attention computes on CUDA, queries are on {q.device}; choose form='auto'")
    if q.dtype == torch.float64:
        raise ConfigError("flash-linear-attention knows no float64; choose form='auto'")
    kernels = require("fla.ops.linear_attn", "linear attention by flash-linear-attention", "cuda")
    kind, exact = multiplied_in(q), working_dtype(q)
    queries, keys = torch.relu(q).to(kind), torch.relu(k).to(kind)
    if mask is not None:
        keys = keys * mask[:, None, :, None]
    features = [_turned(x, at) for x, at in ((queries, query), (keys, key))]
    values = v.to(kind).transpose(1, 2).contiguous()
    sums, _ = kernels.chunk_linear_attn(*features, values, scale=1.0, normalize=False)
    weights = (features[0] * running_sums(features[1], 1, exact)).sum(-1, keepdim=True, dtype=exact)
    return sums.transpose(1, 2).to(exact), weights.transpose(1, 2)


def _turned(x: Tensor, at: Turns) -> Tensor:
    """Features ``(B, T, H, 2D)``, each beside the other in memory."""
    return torch.cat([x * at.sin.to(x.dtype), x * at.cos.to(x.dtype)], -1).transpose(1, 2).contiguous()
