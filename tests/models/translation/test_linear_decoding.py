"""A task that only works if decoding sees what training saw: reverse a sentence and map its words.

With positions divided by each call's own length, or without a state, linear attention in the decoder trains as well and
decodes nothing; that is what the public code does. Local attention stands the same test.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from nas_core.layers.attention import LinearAttention
from nas_core.models.translation import TranslationConfig, TranslationNet
from nas_core.space import translation_space, with_attention

VOCAB, EOS, UPDATES = 14, 2, 400
WHERE = {
    "nowhere": ("softmax", "softmax", "softmax"),
    "encoder": ("linear", "softmax", "softmax"),
    "decoder": ("softmax", "linear", "softmax"),
    "cross": ("softmax", "softmax", "linear"),
    "everywhere": ("linear", "linear", "linear"),
    "near": ("local", "local", "softmax"),
}


def batch(sentences: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Source, target shifted by one, target."""
    length = int(torch.randint(4, 9, (1,), generator=generator))
    source = torch.randint(3, VOCAB, (sentences, length), generator=generator)
    target = (source.flip(1) + 2) % (VOCAB - 3) + 3
    end = torch.full((sentences, 1), EOS)
    return torch.cat([source, end], 1), torch.cat([end, target], 1), torch.cat([target, end], 1)


def exact_matches(where: str) -> float:
    """Share of sentences that a network trained for a few seconds translates without a mistake, greedily."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    one = translation_space(
        "toy", embed_dims=(64,), ffn_dims=(128,), heads=(4,), encoder_layers=(1,), decoder_layers=(1,), qkv_dim=64
    )
    space = with_attention(one, f"toy-{where}", *((kind,) for kind in WHERE[where]))
    net = TranslationNet(space, VOCAB, VOCAB, TranslationConfig(linear=LinearAttention(16), norm_first=True))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, UPDATES, pct_start=0.1)
    for _ in range(UPDATES):
        source, previous, target = batch(64, generator)
        logits = net(net.select(space.largest()), source, previous)
        loss = functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    net.eval()
    right = []
    with torch.no_grad():
        subnet = net.select(space.largest())
        for _ in range(10):
            source, previous, target = batch(50, generator)
            cache, tokens, found = net.start(subnet, net.encode(subnet, source)), previous[:, 0], []
            for _ in range(target.shape[1]):
                tokens = net.step(subnet, tokens, cache).argmax(-1)
                found.append(tokens)
            right.append((torch.stack(found, 1) == target).all(1))
    return float(torch.cat(right).float().mean())


@pytest.fixture(scope="module")
def softmax() -> float:
    return exact_matches("nowhere")


@pytest.mark.slow
@pytest.mark.parametrize("where", [name for name in WHERE if name != "nowhere"])
def test_attention_decodes_what_it_learned(where: str, softmax: float) -> None:
    assert softmax > 0.9
    assert exact_matches(where) > softmax - 0.12
