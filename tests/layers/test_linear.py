"""Elastic linear, layer norm and embedding."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from nas_core.layers import ElasticLinear
from nas_core.layers.linear import ElasticEmbedding, ElasticLayerNorm
from tests.contracts.elastic import ElasticCase, ElasticContract


class TestElasticLinear(ElasticContract):
    def case(self) -> ElasticCase:
        layer = ElasticLinear(7, 5)
        return ElasticCase(
            layer=layer,
            sizes=((7, 5), (3, 5), (7, 2), (4, 1)),
            select=layer.select,
            run=lambda layer, weights, x: F.linear(x, *weights),
            inputs=lambda i, o: (torch.linspace(-1, 2, 3 * i).view(3, i),),
            static=ElasticLinear,
            select_static=lambda static, i, o: static.select(i, o),
            plain=lambda: nn.Linear(7, 5),
            run_plain=lambda plain, x: plain(x),
            count=lambda i, o: i * o + o,
        )


class TestElasticLayerNorm(ElasticContract):
    def case(self) -> ElasticCase:
        layer = ElasticLayerNorm(9)
        return ElasticCase(
            layer=layer,
            sizes=((9,), (4,)),
            select=layer.select,
            run=lambda layer, weights, x: F.layer_norm(x, x.shape[-1:], *weights),
            inputs=lambda c: (torch.linspace(-1, 2, 6 * c).view(2, 3, c).sin(),),
            static=ElasticLayerNorm,
            select_static=lambda static, c: static.select(c),
            plain=lambda: nn.LayerNorm(9),
            run_plain=lambda plain, x: plain(x),
            count=lambda c: 2 * c,
        )


class TestElasticEmbedding(ElasticContract):
    def case(self) -> ElasticCase:
        layer = ElasticEmbedding(6, 5, 1)
        return ElasticCase(
            layer=layer,
            sizes=((5,), (2,)),
            select=layer.select,
            run=lambda layer, table, tokens: F.embedding(tokens, table, layer.padding_idx),
            inputs=lambda c: (torch.tensor([[0, 1, 5, 5], [3, 2, 2, 1]]),),
            static=lambda c: ElasticEmbedding(6, c, 1),
            select_static=lambda static, c: static.select(c),
            plain=lambda: nn.Embedding(6, 5, 1),
            run_plain=lambda plain, tokens: plain(tokens),
            count=lambda c: 6 * c,
        )
