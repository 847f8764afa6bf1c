"""Elastic linear layers, layer norms and embeddings. Smaller sizes use the first rows and columns."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nas_core.layers.weights import Affine, NormWeights


def prefix(tensor: Tensor, *sizes: int) -> Tensor:
    """Return the view ``tensor[:s0, :s1, ..]``, or the tensor itself at full size."""
    for dim, size in enumerate(sizes):
        if size != tensor.shape[dim]:
            tensor = tensor.narrow(dim, 0, size)
    return tensor


class ElasticLinear(nn.Module):
    """Linear layer whose smaller sizes use the first rows and columns (HAT, section 3.1)."""

    def __init__(self, in_features: int, out_features: int, gain: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.xavier_uniform_(self.weight, gain)

    def select(self, in_features: int, out_features: int) -> Affine:
        return Affine(prefix(self.weight, out_features, in_features), prefix(self.bias, out_features))


class ElasticLayerNorm(nn.Module):
    """Layer norm whose smaller sizes use the first channels."""

    def __init__(self, features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def select(self, features: int) -> NormWeights:
        return NormWeights(prefix(self.weight, features), prefix(self.bias, features), self.eps)


class ElasticEmbedding(nn.Module):
    """Embedding ``(V, C)`` whose smaller sizes use the first channels."""

    def __init__(self, tokens: int, features: int, padding_idx: int) -> None:
        super().__init__()
        self.padding_idx = padding_idx
        self.weight = nn.Parameter(torch.empty(tokens, features))
        nn.init.normal_(self.weight, std=features**-0.5)
        with torch.no_grad():
            self.weight[padding_idx].zero_()

    def select(self, features: int) -> Tensor:
        return prefix(self.weight, len(self.weight), features)
