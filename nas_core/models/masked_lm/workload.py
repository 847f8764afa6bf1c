"""Latency workload of a masked language model: a batch of sequences, with token head or classifier."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nas_core.models.masked_lm.net import ClassHead, MaskedLMConfig, MaskedLMNet
from nas_core.models.workload import FIRST_WORD, OnePassSubnetWorkload, check_minimum, same_draws
from nas_core.space import Architecture, SearchSpace
from nas_core.space.bert import network_width

HEAD = "classes"
"""Name of the classification head."""


@dataclass(frozen=True, kw_only=True)
class MaskedLMWorkloadConfig:
    """Settings of the latency workload of a masked language model."""

    vocab: int = 50265
    """Vocabulary size."""
    batch: int = 1
    """Sequences per pass."""
    length: int = 0
    """Tokens per sequence. 0 means the space's ``sequence_length``."""
    classes: int = 0
    """Classes of a classification head. 0 means the token head."""

    def __post_init__(self) -> None:
        check_minimum(self, vocab=FIRST_WORD + 1, batch=1, length=0, classes=0)


class MaskedLMWorkload(OnePassSubnetWorkload):
    """Latency workload of a static network with random weights, in one component ``network``."""

    def __init__(
        self, space: SearchSpace, architecture: Architecture, config: MaskedLMWorkloadConfig, device: str = "cpu"
    ) -> None:
        architecture, head = space.validate(architecture), HEAD if config.classes else None
        with same_draws():
            net, tokens = timed_net(space, architecture, config), sequences(architecture, config)
        super().__init__(
            net, architecture, tokens, device, lambda net, subnet, x: net.logits(subnet, net.encode(subnet, x), head)
        )


def timed_net(space: SearchSpace, architecture: Architecture, config: MaskedLMWorkloadConfig) -> MaskedLMNet:
    settings = timed_config(architecture, config)
    return MaskedLMNet(SearchSpace.of(architecture, like=space), config.vocab, settings).eval()


def timed_config(architecture: Architecture, config: MaskedLMWorkloadConfig) -> MaskedLMConfig:
    heads = (ClassHead(HEAD, config.classes, network_width(architecture)),) if config.classes else ()
    max_length = max(timed_length(architecture, config), architecture.number("sequence_length"))
    return MaskedLMConfig(stored_positions=max_length, classification_heads=heads).static()


def sequences(architecture: Architecture, config: MaskedLMWorkloadConfig) -> Tensor:
    return torch.randint(FIRST_WORD, config.vocab, (config.batch, timed_length(architecture, config)))


def timed_length(architecture: Architecture, config: MaskedLMWorkloadConfig) -> int:
    return config.length or architecture.number("sequence_length")
