"""Linear layers, layer norms and embeddings of which a prefix is used.

Every elastic layer has one method, ``select``, that gives its weights for given sizes. The supernet's forward computes
with what ``select`` returns and extraction stores what ``select`` returns, so the two cannot differ.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nas_core.layers.weights import Affine, NormWeights


def prefix(tensor: Tensor, *sizes: int) -> Tensor:
    """``tensor[:s0, :s1, ..]`` as a view; the tensor itself where nothing is cut (which keeps its gradient a copy
    cheaper)."""
    for dim, size in enumerate(sizes):
        if size != tensor.shape[dim]:
            tensor = tensor.narrow(dim, 0, size)
    return tensor


class ElasticLinear(nn.Module):
    """A linear layer whose first ``out_features`` rows and ``in_features`` columns are used (HAT, section 3.1)."""

    def __init__(self, in_features: int, out_features: int, gain: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.xavier_uniform_(self.weight, gain)

    def select(self, in_features: int, out_features: int) -> Affine:
        """Weight ``(out_features, in_features)`` and bias ``(out_features,)``."""
        return Affine(prefix(self.weight, out_features, in_features), prefix(self.bias, out_features))


class ElasticLayerNorm(nn.Module):
    """Layer norm over the first ``features`` channels."""

    def __init__(self, features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def select(self, features: int) -> NormWeights:
        """Weight and bias ``(features,)``."""
        return NormWeights(prefix(self.weight, features), prefix(self.bias, features), self.eps)


class ElasticEmbedding(nn.Module):
    """A table ``(V, C)`` of which each side of the network may read another prefix of the channels."""

    def __init__(self, tokens: int, features: int, padding_idx: int) -> None:
        super().__init__()
        self.padding_idx = padding_idx
        self.weight = nn.Parameter(torch.empty(tokens, features))
        nn.init.normal_(self.weight, std=features**-0.5)
        with torch.no_grad():
            self.weight[padding_idx].zero_()

    def select(self, features: int) -> Tensor:
        """The table ``(V, features)``."""
        return self.weight if features == self.weight.shape[1] else self.weight.narrow(1, 0, features)
