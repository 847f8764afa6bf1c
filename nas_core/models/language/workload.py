"""Latency workload of a language model: process a prompt, then decode token by token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from nas_core.errors import ConfigError
from nas_core.models.language.net import LanguageCache, LanguageNet, length_limit
from nas_core.models.workload import FIRST_WORD, SubnetWorkload, check_minimum, same_draws
from nas_core.space import Architecture, SearchSpace


@dataclass(frozen=True, kw_only=True)
class LanguageWorkloadConfig:
    """Settings of the latency workload of a language model."""

    vocab: int = 32000
    """Vocabulary size."""
    prompt_length: int = 128
    """Number of tokens of the prompt."""
    new_tokens: int = 32
    """Number of decoding steps."""
    batch: int = 1
    """Sequences per pass."""

    def __post_init__(self) -> None:
        check_minimum(self, vocab=FIRST_WORD + 1, prompt_length=1, new_tokens=1, batch=1)


def check_lengths(net: LanguageNet, config: LanguageWorkloadConfig) -> None:
    length, limit = config.prompt_length + config.new_tokens, length_limit(net.space, net.config)
    if limit is not None and length > limit:
        raise ConfigError(
            f"prompt_length {config.prompt_length} + new_tokens {config.new_tokens} = {length} exceeds context_length"
            f" {limit} of this network; reduce them, or use a space with a longer context"
        )


class LanguageWorkload(SubnetWorkload):
    """Latency workload of a static network with random weights, in components ``prompt`` and ``decoding``."""

    _net: LanguageNet

    def __init__(
        self, space: SearchSpace, architecture: Architecture, config: LanguageWorkloadConfig, device: str = "cpu"
    ) -> None:
        architecture = space.validate(architecture)
        with same_draws():
            net = LanguageNet(SearchSpace.of(architecture, like=space), config.vocab)
            tokens = torch.randint(FIRST_WORD, config.vocab, (config.prompt_length + config.new_tokens, config.batch))
        check_lengths(net, config)
        self._prompt = tokens[: config.prompt_length].T.contiguous().to(device)  # (batch, prompt_length)
        self._words = list(tokens[config.prompt_length :].to(device))  # new_tokens x (batch,)
        super().__init__(net, architecture, device)

    def _select(self) -> None:
        super()._select()
        self._cache: LanguageCache | None = None

    @property
    def components(self) -> Mapping[str, Callable[[], object]]:
        return {"prompt": self.read, "decoding": self.decode}

    def read(self) -> torch.Tensor:
        features, self._cache = self._net.read(self._subnet, self._prompt)
        return nn.functional.linear(features, self._subnet.output)

    def decode(self) -> torch.Tensor:
        assert self._cache is not None, "the prompt is read first"
        cache, logits = self._cache.copy(), torch.empty(0)
        for tokens in self._words:
            logits = self._net.step(self._subnet, tokens, cache)
        return logits
