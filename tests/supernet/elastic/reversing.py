"""A translation network small enough to be trained in a test: it learns to say a sentence backwards."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.models.translation import TranslationConfig, TranslationNet
from nas_core.models.translation.net import Subnet
from nas_core.space import SearchSpace, translation_space
from nas_core.space.mformer import with_attention
from nas_core.supernet.elastic.kinds import with_kinds

__all__ = ["PAD", "PLAIN", "SEVERAL", "VOCAB", "Batch", "batches", "loss", "several", "trained"]

PAD, START, VOCAB = 1, 2, 14
PLAIN = translation_space(
    "reversing",
    embed_dims=(24, 16),
    ffn_dims=(32, 16),
    heads=(2, 1),
    encoder_layers=(2,),
    decoder_layers=(2,),
    qkv_dim=24,
)
SEVERAL = with_attention(PLAIN, "reversing-kinds", *[("softmax", "linear")] * 3)
Batch = tuple[Tensor, Tensor, Tensor]
"""Sources (B, S), what the decoder reads (B, T) and what it is to say (B, T), padded on the right."""


def batches(count: int, seed: int, rows: int = 24, longest: int = 9) -> list[Batch]:
    stream = torch.Generator().manual_seed(seed)
    results = []
    for _ in range(count):
        source = torch.full((rows, longest), PAD)
        for row in source:
            length = int(torch.randint(3, longest + 1, (1,), generator=stream))
            row[:length] = torch.randint(3, VOCAB, (length,), generator=stream)
        expected = torch.full_like(source, PAD)
        for row, message in zip(source, expected, strict=True):
            tokens = row[row != PAD]
            message[: len(tokens)] = tokens.flip(0)
        read = torch.where(expected != PAD, torch.cat([torch.full((rows, 1), START), expected[:, :-1]], 1), PAD)
        results.append((source, read, expected))
    return results


def loss(net: TranslationNet, subnet: Subnet, batch: Batch) -> Tensor:
    source, read, expected = batch
    return F.cross_entropy(net(subnet, source, read).flatten(0, 1), expected.flatten(), ignore_index=PAD)


def _built(space: SearchSpace) -> TranslationNet:
    return TranslationNet(space, VOCAB, VOCAB, TranslationConfig(share_all_embeddings=True))


@functools.cache
def trained() -> TranslationNet:
    """Trained once; not to be changed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = _built(PLAIN)
    optimizer = torch.optim.Adam(net.parameters(), 4e-3)
    subnet_of = PLAIN.largest()
    for batch in batches(150, 1):
        optimizer.zero_grad()
        loss(net, net.select(subnet_of), batch).backward()
        optimizer.step()
    return net.eval()


def several() -> TranslationNet:
    """The trained network with further kinds of attention."""
    net = _built(SEVERAL).eval()
    net.load_state_dict(with_kinds(trained().state_dict(), net))
    return net
