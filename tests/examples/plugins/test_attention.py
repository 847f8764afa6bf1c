"""A kind of attention of another distribution: under the contract, and in a supernet that is trained and searched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from examples.plugins.attention import AverageAttention
from nas_core import models
from nas_core.layers.attention import ATTENTION_KINDS, AttentionKind
from nas_core.layers.attention.projections import SelfAttentionWeights
from nas_core.models.translation import TranslationNet
from nas_core.search import EvolutionConfig, HATEvolution, search
from nas_core.space import Architecture, SearchSpace, translation_space, with_attention
from tests.contracts.attention import CrossAttentionContract
from tests.toys import plug_in

VOCAB = 12


class TestAverage(CrossAttentionContract):
    def kind(self) -> AttentionKind:
        return AverageAttention()

    def reference(
        self, q: Tensor, k: Tensor, v: Tensor, weights: SelfAttentionWeights, mask: Tensor | None, causal: bool
    ) -> Tensor:
        rows = []
        for row in range(len(v)):
            tokens = torch.arange(v.shape[2]) if mask is None else mask[row, 0, 0].nonzero().flatten()
            read = [tokens[tokens <= at] if causal else tokens for at in range(q.shape[2])]
            rows.append(torch.stack([v[row, :, at].mean(1) + 0 * q[row].sum() + 0 * k[row].sum() for at in read], 1))
        return torch.stack(rows)


@pytest.fixture
def average(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AttentionKind:
    plug_in(tmp_path / "site", monkeypatch, "nas_ext.attention_kinds", "average", "examples.plugins.attention:AVERAGE")
    return ATTENTION_KINDS.get("average")


def space() -> SearchSpace:
    small = translation_space(
        "small", embed_dims=(16,), ffn_dims=(24, 16), heads=(2,), encoder_layers=(2,), decoder_layers=(2, 1), qkv_dim=8
    )
    kinds = ("softmax", "linear", "average")
    return with_attention(small, "mine", kinds, kinds, ("softmax", "linear", "average"))


def test_a_supernet_with_it_trains_decodes_and_is_searched(average: AttentionKind, tmp_path: Path) -> None:
    torch.manual_seed(0)
    mine = space()
    net, rng = TranslationNet(mine, VOCAB, VOCAB), np.random.default_rng(0)
    source, target = torch.randint(4, VOCAB, (6, 5)), torch.randint(4, VOCAB, (6, 4))
    previous_tokens = torch.cat([torch.full((6, 1), 2), target[:, :-1]], 1)

    def loss(architecture: Architecture) -> Tensor:
        return functional.cross_entropy(
            net(net.select(architecture), source, previous_tokens).flatten(0, 1), target.flatten()
        )

    everywhere = {gene: ["average"] * 2 for gene in mine.largest() if gene.endswith("attention")}
    chosen = Architecture({**mine.largest().to_dict(), **everywhere})
    optimizer, before = torch.optim.Adam(net.parameters(), 0.01), loss(chosen).item()
    for update in range(60):
        optimizer.zero_grad()
        loss(chosen if update % 2 else mine.sample(rng)).backward()
        optimizer.step()
    assert loss(chosen).item() < 0.8 * before
    with torch.no_grad():
        subnet = net.eval().select(chosen)
        memory = net.encode(subnet, source)
        full, cache = net.decode(subnet, previous_tokens, memory), net.start(subnet, memory)
        for position in range(4):
            torch.testing.assert_close(
                net.step(subnet, previous_tokens[:, position], cache), full[:, position], atol=1e-5, rtol=1e-4
            )

    def evaluate(architecture: Architecture) -> dict[str, float]:
        with torch.no_grad():
            return {"loss": float(loss(architecture)), "flops_g": models.flops_g(architecture)}

    strategy = HATEvolution(mine, config=EvolutionConfig(iterations=3, population=12, parents=4))
    result = search({"all": strategy}, evaluate, tmp_path / "run", objectives=("loss", "flops_g"), progress=False)
    kinds = {kind for found in result.evaluated for gene in everywhere for kind in found[gene]}
    assert kinds == {"softmax", "linear", "average"}
    assert evaluate(chosen)["flops_g"] < evaluate(mine.largest())["flops_g"]
