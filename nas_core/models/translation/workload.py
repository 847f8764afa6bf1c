"""Latency workload of a translation architecture: encode one sentence, then decode token by token with a beam.

Unlike in HAT, decoding is incremental, and hypotheses are reordered after each step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from nas_core.models.translation.net import TranslationNet
from nas_core.models.workload import FIRST_WORD, SubnetWorkload, check_minimum, same_draws
from nas_core.space import Architecture, SearchSpace


@dataclass(frozen=True, kw_only=True)
class TranslationWorkloadConfig:
    """Settings of the latency workload of a translation network."""

    source_vocab: int = 32000
    """Source vocabulary size."""
    target_vocab: int = 32000
    """Target vocabulary size."""
    source_length: int = 30
    """Tokens of the source sentence."""
    target_length: int = 30
    """Number of decoding steps."""
    beam: int = 5
    """Hypotheses per decoding step."""

    def __post_init__(self) -> None:
        min_vocab = FIRST_WORD + 1
        check_minimum(self, source_vocab=min_vocab, target_vocab=min_vocab, source_length=1, target_length=1, beam=1)


class TranslationWorkload(SubnetWorkload):
    """Latency workload of a static network with random weights, in components ``encoder`` and ``decoder``."""

    def __init__(
        self, space: SearchSpace, architecture: Architecture, config: TranslationWorkloadConfig, device: str = "cpu"
    ) -> None:
        architecture = space.validate(architecture)
        with same_draws():
            static = SearchSpace.of(architecture, like=space)
            net = TranslationNet(static, config.source_vocab, config.target_vocab)
            source = torch.randint(FIRST_WORD, config.source_vocab, (1, config.source_length))
            targets = torch.randint(FIRST_WORD, config.target_vocab, (config.target_length, config.beam))
        self._source = source.to(device)  # (1, S)
        self._targets = list(targets.to(device))  # T x (beam,)
        self._beam_rows = torch.zeros(config.beam, dtype=torch.long, device=device)
        self._order = torch.arange(config.beam, device=device).flip(0)
        self._memory: Any = None
        super().__init__(net, architecture, device)

    @property
    def components(self) -> Mapping[str, Callable[[], object]]:
        return {"encoder": self.encode, "decoder": self.decode}

    def encode(self) -> None:
        self._memory = self._net.encode(self._subnet, self._source)

    def decode(self) -> torch.Tensor:
        cache = self._net.start(self._subnet, self._memory, self._beam_rows)
        logits = torch.empty(0)
        for tokens in self._targets:
            logits = self._net.step(self._subnet, tokens, cache)
            cache.reorder(self._order)
        return logits
