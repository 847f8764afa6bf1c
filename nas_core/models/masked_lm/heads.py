"""What reads the features of a masked language model: the head that predicts tokens, and classifiers of sequences.

Shapes: B batch, T length, C channels, V vocabulary, K classes, I hidden units of a classification head.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.layers import ElasticLayerNorm, ElasticLinear
from nas_core.layers.feed_forward import ACTIVATIONS
from nas_core.layers.transformer import norm
from nas_core.models.masked_lm.subnet import ClassHeadWeights, TokenHeadWeights


class ElasticTokenHead(nn.Module):
    """A linear layer, an activation and a layer norm of the network's width, and a bias for each token."""

    def __init__(self, features: int, vocabulary: int, norm_eps: float) -> None:
        super().__init__()
        self.dense = ElasticLinear(features, features)
        self.norm = ElasticLayerNorm(features, norm_eps)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def select(self, features: int) -> TokenHeadWeights:
        """The weights for so many channels."""
        return TokenHeadWeights(self.dense.select(features, features), self.norm.select(features), self.bias)


def token_logits(x: Tensor, weights: TokenHeadWeights, table: Tensor, activation: str) -> Tensor:
    """Features (.., C) and the table (V, C) to logits (.., V)."""
    x = norm(ACTIVATIONS[activation](F.linear(x, *weights.dense)), weights.norm)
    return F.linear(x, table, weights.bias)


class ElasticClassHead(nn.Module):
    """A linear layer, an activation and another linear layer; no more hidden units than channels."""

    def __init__(self, features: int, inner: int, classes: int) -> None:
        super().__init__()
        self.inner, self.classes = min(inner, features), classes
        self.dense = ElasticLinear(features, self.inner)
        self.out_proj = ElasticLinear(self.inner, classes)

    def select(self, features: int) -> ClassHeadWeights:
        """The weights for so many channels."""
        inner = min(self.inner, features)
        return ClassHeadWeights(self.dense.select(features, inner), self.out_proj.select(inner, self.classes))


def class_logits(x: Tensor, weights: ClassHeadWeights, activation: str, dropout: float = 0.0) -> Tensor:
    """Features (B, T, C), of which the first token's are read, to logits (B, K)."""
    x = x[:, 0]
    x = ACTIVATIONS[activation](F.linear(F.dropout(x, dropout) if dropout else x, *weights.dense))
    return F.linear(F.dropout(x, dropout) if dropout else x, *weights.out_proj)
