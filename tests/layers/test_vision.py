"""The image layer against plain modules and the textbook's formulas, for each kind of attention."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.layers import MoSConfig
from nas_core.layers.attention import ATTENTION_KINDS
from nas_core.layers.transformer import Dropouts
from nas_core.layers.vision import ElasticPatchEmbedding, ElasticVisionLayer
from tests.contracts.elastic import ElasticCase, ElasticContract, nested_prefix, waves
from tests.naive import cosformer_naive

C, FFN, D, Q, FEATURES, CLIP = 12, 20, 4, 12, 5, 2
PLAIN = MoSConfig()
ENCODING = torch.linspace(0.2, 1.0, FEATURES)


class NaiveLayer(nn.Module):
    """The layer of the full size in plain modules, with attention written out."""

    def __init__(self, kind: str, relative: bool) -> None:
        super().__init__()
        self.kind = kind
        self.self_attn, self.ffn = nn.Module(), nn.Module()
        if relative:
            self.self_attn.relative = nn.Parameter(torch.empty(2 * CLIP + 1, D))
        self.self_attn.in_proj, self.self_attn.out_proj = nn.Linear(C, 3 * Q), nn.Linear(Q, C)
        self.self_attn_norm, self.ffn_norm = nn.LayerNorm(C), nn.LayerNorm(C)
        self.ffn.fc1, self.ffn.fc2 = nn.Linear(C, FFN), nn.Linear(FFN, C)

    def attended(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = (
            part.view(batch, length, Q // D, D).transpose(1, 2) for part in self.self_attn.in_proj(x).chunk(3, -1)
        )
        if self.kind == "linear":
            y = cosformer_naive(q, k, v, max_length=length)
        else:
            keys = k[:, :, None].expand(-1, -1, length, -1, -1)
            if hasattr(self.self_attn, "relative"):
                at = torch.arange(length)
                keys = keys + self.self_attn.relative[(at - at[:, None]).clamp(-CLIP, CLIP) + CLIP]
            scores = (q[:, :, :, None] * keys).sum(-1) / D**0.5
            y = scores.softmax(-1) @ v
        return self.self_attn.out_proj(y.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attended(self.self_attn_norm(x))
        return x + self.ffn.fc2(F.relu(self.ffn.fc1(self.ffn_norm(x))))  # type: ignore[no-any-return]


def placed(name: str, full: Tensor, part: Tensor) -> Tensor:
    """Queries, keys and values are each a prefix of their own rows."""
    if "in_proj" not in name:
        return nested_prefix(name, full, part)
    thirds = zip(full.chunk(3), part.chunk(3), strict=True)
    return torch.cat([nested_prefix(name, whole, third) for whole, third in thirds])


def layer_case(kind: str, relative: bool, mos: MoSConfig = PLAIN) -> ElasticCase:
    table = (CLIP, D) if relative else None

    def count(c: int, f: int, heads: int) -> int:
        q = heads * D
        return 4 * c * q + 3 * q + c + 2 * c * f + f + c + 4 * c + (2 * CLIP + 1) * D * (relative and kind == "softmax")

    layer = ElasticVisionLayer(C, FFN, Q, FEATURES, mos, (kind,), table)
    return ElasticCase(
        layer=layer,
        sizes=((C, FFN, 3), (C, 9, 1), (7, FFN, 2), (5, 3, 3)),
        select=lambda c, f, h: layer.select(c, f, h, ENCODING, kind, h * D),
        run=lambda layer, weights, x: layer(x, weights, Dropouts()),
        inputs=lambda c, f, h: ((70 * waves(2, 7, c)).sin(),),  # tokens with a spread that layer norm does not magnify
        static=lambda c, f, h: ElasticVisionLayer(c, f, h * D, FEATURES, PLAIN, (kind,), table),
        select_static=lambda static, c, f, h: static.select(c, f, h, None, kind, h * D),
        plain=lambda: NaiveLayer(kind, relative and kind == "softmax"),
        run_plain=lambda plain, x: plain(x),
        count=count,
        placed=placed if mos.kind == "none" else None,
    )


class TestRelativeLayer(ElasticContract):
    def case(self) -> ElasticCase:
        return layer_case("softmax", relative=True)


class TestLinearLayer(ElasticContract):
    def case(self) -> ElasticCase:
        return layer_case("linear", relative=True)


class TestPatchEmbedding(ElasticContract):
    def case(self) -> ElasticCase:
        layer = ElasticPatchEmbedding(3, 10, 4)
        return ElasticCase(
            layer=layer,
            sizes=((10,), (7,), (1,)),
            select=layer.select,
            run=lambda layer, weights, x: F.conv2d(x, *weights, stride=4),
            inputs=lambda c: (waves(2, 3, 8, 12),),
            static=lambda c: ElasticPatchEmbedding(3, c, 4),
            select_static=lambda static, c: static.select(c),
            plain=lambda: nn.Conv2d(3, 10, 4, 4),
            run_plain=lambda plain, x: plain(x),
            count=lambda c: c * 3 * 16 + c,
        )


@pytest.mark.parametrize("kind", ATTENTION_KINDS.names())
def test_what_is_exported_equals_the_usual_form(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    layer = ElasticVisionLayer(C, FFN, Q, FEATURES, PLAIN, (kind,), (CLIP, D))
    weights, x = layer.select(C, FFN, 3, None, kind, Q), waves(2, 45, C)
    usual = layer(x, weights, Dropouts())
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    torch.testing.assert_close(layer(x, weights, Dropouts()), usual, atol=1e-5, rtol=1e-5)
