"""The sums of linear attention by flash-linear-attention's CUDA kernels."""

from __future__ import annotations

import torch
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.layers.attention.cosformer.positions import Turns
from nas_core.optional import require

__all__ = ["fla_sums"]


def fla_sums(
    q: Tensor, k: Tensor, v: Tensor, query: Turns, key: Turns, mask: Tensor | None, max_length: int | None, causal: bool
) -> tuple[Tensor, Tensor]:
    """Compute what ``chunked_sums`` does, by flash-linear-attention; causal attention on CUDA alone."""
    if not q.is_cuda or not causal:
        raise ConfigError("flash-linear-attention computes causal attention on CUDA; choose form='auto'")
    kernels = require("fla.ops.linear_attn", "linear attention by flash-linear-attention", "cuda")
    queries, keys = torch.relu(q).float(), torch.relu(k).float()
    if mask is not None:
        keys = keys * mask[:, None, :, None]
    features = [torch.cat([x * at.sin, x * at.cos], -1).transpose(1, 2) for x, at in ((queries, query), (keys, key))]
    values = v.float().transpose(1, 2)
    sums, _ = kernels.chunk_linear_attn(*features, values, scale=1.0, normalize=False)
    weights = (features[0] * features[1].cumsum(1)).sum(-1, keepdim=True)
    return sums.transpose(1, 2), weights.transpose(1, 2)
