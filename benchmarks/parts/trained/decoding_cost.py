"""What decoding of a language model costs at a position: bytes that are kept, and milliseconds of a token."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import torch

from nas_core.models.language import LanguageConfig, LanguageNet
from nas_core.space import Architecture, SearchSpace

_STEPS, _WARM_UP = 48, 8


def cache_bytes(net: LanguageNet, architecture: Architecture, position: int) -> int:
    """Bytes of what all attentions keep of so many positions of one sequence."""
    with torch.no_grad():
        _, cache = net.read(net.select(architecture), torch.full((1, position), 5))
    kept = (tensor for past in cache.past if past is not None for tensor in past.tensors())
    return sum(tensor.numel() * tensor.element_size() for tensor in kept)


def token_ms(net: LanguageNet, architectures: Sequence[Architecture], position: int) -> list[float]:
    """Median time of the next token of each, after so many positions; they take turns, so that what else runs on the
    machine meets all of them."""
    tokens = torch.full((1,), 5)
    with torch.no_grad():
        subnets = [net.select(each) for each in architectures]
        caches = [net.read(subnet, torch.full((1, position), 5))[1] for subnet in subnets]
        times: list[list[float]] = [[] for _ in subnets]
        for step in range(_WARM_UP + _STEPS):
            for place, subnet in enumerate(subnets):
                after = caches[place].copy()
                begun = time.perf_counter()
                net.step(subnet, tokens, after)
                if step >= _WARM_UP:
                    times[place].append((time.perf_counter() - begun) * 1e3)
    return [statistics.median(each) for each in times]


def untrained(space: SearchSpace, vocab: int) -> LanguageNet:
    """The network of a space with random weights, of which decoding costs the same."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LanguageNet(space, vocab, LanguageConfig(norm_first=True)).eval()
