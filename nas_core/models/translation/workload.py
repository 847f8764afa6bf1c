"""The workload of a translation architecture: one sentence encoded, then decoded word by word with a beam.

As in HAT, the time is that of the encoder on one sentence of S words plus T incremental decoder steps on a batch of
``beam`` hypotheses, output projection included. Unlike HAT, the hypotheses are reordered after each step, as a beam
search does, and no step is a full forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from nas_core.errors import SpaceError
from nas_core.models.translation.subnet import DecoderCache
from nas_core.models.workload import FIRST_WORD, SubnetWorkload, check_least, check_words, same_draws
from nas_core.space import Architecture, SearchSpace


@dataclass(frozen=True, kw_only=True)
class TranslationWorkloadConfig:
    """What is translated while the clock runs."""

    source_vocab: int = 32000
    """Rows of the source embedding."""
    target_vocab: int = 32000
    """Rows of the target embedding and of the output projection."""
    source_length: int = 30
    """S: words of the source sentence."""
    target_length: int = 30
    """T: decoder steps."""
    beam: int = 5
    """Hypotheses decoded at a time."""

    def __post_init__(self) -> None:
        check_words(self, "source_vocab", "target_vocab")
        check_least(self, source_length=1, target_length=1, beam=1)


class TranslationWorkload(SubnetWorkload):
    """A static network of ``architecture``, with random weights, and the parts ``encoder`` and ``decoder``.

    Args:
        space: the space the architecture is taken from; gives names and order of its genes.
        network: builds the network from (one-architecture space, source vocabulary, target vocabulary); default
            :class:`nas_core.models.translation.net.TranslationNet`.

    Raises:
        ArchitectureError: the architecture lies outside the space.
        SpaceError: the space lacks a gene that the network has.
    """

    def __init__(
        self,
        space: SearchSpace,
        architecture: Architecture,
        config: TranslationWorkloadConfig,
        device: str = "cpu",
        network: Callable[[SearchSpace, int, int], Any] | None = None,
    ) -> None:
        if network is None:
            from nas_core.models.translation.net import TranslationNet

            network = TranslationNet
        architecture = space.validate(architecture)
        self.config = config
        with same_draws():
            try:
                net = network(SearchSpace.of(architecture, like=space), config.source_vocab, config.target_vocab)
            except SpaceError as error:
                raise SpaceError(f"space {space.name!r} does not hold translation architectures: {error}") from None
            source = torch.randint(FIRST_WORD, config.source_vocab, (1, config.source_length))
            targets = torch.randint(FIRST_WORD, config.target_vocab, (config.target_length, config.beam))
        self._source = source.to(device)  # (1, S)
        self._targets = list(targets.to(device))  # T x (beam,)
        self._widen = torch.zeros(config.beam, dtype=torch.long, device=device)
        self._order = torch.arange(config.beam, device=device).flip(0)
        self._memory: Any = None
        super().__init__(net, architecture, device)

    @property
    def parts(self) -> Mapping[str, Callable[[], object]]:
        return {"encoder": self.encode, "decoder": self.decode}

    def encode(self) -> None:
        """One sentence through the encoder."""
        self._memory = self._net.encode(self._subnet, self._source)

    def decode(self) -> torch.Tensor:
        """T steps from the last encoded sentence; gives the last logits ``(beam, target_vocab)``."""
        return self._decoded()[0]

    def cache_tensors(self) -> list[torch.Tensor]:
        """What the cache of T steps holds: keys and values, or what the kinds of attention make of them."""
        self.encode()
        _, cache = self._decoded()
        states = [*(past for past in cache.past if past is not None), *cache.cross]
        return [tensor for state in states for tensor in state.tensors()]

    def _decoded(self) -> tuple[torch.Tensor, DecoderCache]:
        cache = self._net.start(self._subnet, self._memory, self._widen)
        logits = torch.empty(0)
        for tokens in self._targets:
            logits = self._net.step(self._subnet, tokens, cache)
            cache.reorder(self._order)
        return logits, cache
