"""The kind of Marian's translation networks: costs by formula, and the time of encoding and decoding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.graph.graph import Graph
from nas_core.models.genes import StackGenes
from nas_core.models.kind import ModelKind, WorkloadPart
from nas_core.models.translation import costs
from nas_core.models.translation.kind import TRANSLATION
from nas_core.models.translation.workload import TranslationWorkloadConfig
from nas_core.models.workload import FIRST_WORD, same_draws
from nas_core.optional import require
from nas_core.space import Architecture, SearchSpace

_CONSTANT = ("head_dim", "context_length")
_NAMES = ("encoder.layers", "decoder.layers", "embed_dim", "encoder.ffn_dim", "decoder.ffn_dim", *_CONSTANT)
GENES = StackGenes("a translation network of Marian", _NAMES, _CONSTANT, role="")


class MarianWorkload:
    """Workload of a model, in components ``encoder`` and ``decoder``.

    It encodes sentences, and decodes with a cache token by token, with all hypotheses of a beam.

    Args:
        source: token indices (sentences, length).
        targets: token indices (length, sentences times beam, 1).
    """

    def __init__(self, model: Any, source: Tensor, targets: Tensor) -> None:
        self._model, self._source, self._targets = model, source, targets
        self._order = torch.arange(targets.shape[1], device=targets.device).flip(0)
        self._memory = torch.empty(0)

    @classmethod
    def random(
        cls, space: SearchSpace, architecture: Architecture, config: TranslationWorkloadConfig, device: str = "cpu"
    ) -> MarianWorkload:
        """Return the workload of a static network with random weights, for one sentence."""
        with same_draws():
            model: Any = MARIAN.build(space, space.validate(architecture), config).to(device)
            source = torch.randint(FIRST_WORD, config.source_vocab, (1, config.source_length), device=device)
            shape = (config.target_length, config.beam, 1)
            targets = torch.randint(FIRST_WORD, config.target_vocab, shape, device=device)
        return cls(model, source, targets)

    @property
    def modules(self) -> Sequence[nn.Module]:
        return [self._model]

    @property
    def components(self) -> Mapping[str, Callable[[], object]]:
        return {"encoder": self.encode, "decoder": self.decode}

    def convert(self, dtype: torch.dtype) -> None:
        self._model.to(dtype)

    def encode(self) -> None:
        self._memory = self._model.get_encoder()(self._source)[0].repeat(len(self._order) // len(self._source), 1, 1)

    def decode(self) -> Tensor:
        """Return the logits (beam, 1, vocab) of the last token."""
        return self.decode_all()[0]

    def decode_all(self) -> tuple[Tensor, Any]:
        """Return the logits of the last token, and the cache."""
        library, logits = _transformers(), torch.empty(0)
        cache = library.EncoderDecoderCache(library.DynamicCache(), library.DynamicCache())
        for tokens in self._targets:
            logits = self._model(None, None, tokens, None, (self._memory,), cache).logits
            cache.reorder_cache(self._order)
        return logits, cache


class _MarianKind(ModelKind):
    name = "marian"
    genes = GENES.names
    params_description = TRANSLATION.params_description
    attributes = TRANSLATION.attributes
    workload_config = TranslationWorkloadConfig
    workload = staticmethod(MarianWorkload.random)

    @property
    def operations(self) -> tuple[str, ...]:
        return TRANSLATION.operations

    def check(self, space: SearchSpace) -> None:
        for gene in GENES.names:
            GENES.check_gene(space, gene)

    def params_m(self, architecture: Architecture) -> float:
        return TRANSLATION.params_m(_translation(architecture))

    def flops_g(self, architecture: Architecture) -> float:
        return TRANSLATION.flops_g(_translation(architecture))

    def weights(self, architecture: Architecture, config: TranslationWorkloadConfig) -> int:
        """Count weights with one embedding per vocabulary, and the fixed positions of encoder and decoder."""
        source, target = config.source_vocab, config.target_vocab
        shared = source == target
        positions = 2 * architecture.number("context_length") * architecture.number("embed_dim")
        return positions + costs.parameters(_translation(architecture), source, target, shared, True)

    def activation_numel(self, architecture: Architecture, config: TranslationWorkloadConfig) -> int:
        return TRANSLATION.activation_numel(_translation(architecture), config)

    def cache(self, architecture: Architecture, config: TranslationWorkloadConfig) -> int:
        return TRANSLATION.cache(_translation(architecture), config)

    def graph(self, architecture: Architecture) -> Graph:
        return TRANSLATION.graph(_translation(architecture))

    def layers(self, architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
        return TRANSLATION.layers(_translation(architecture))

    def build(self, space: SearchSpace, architecture: Architecture, config: TranslationWorkloadConfig) -> nn.Module:
        width = architecture.number("embed_dim")
        heads = width // architecture.number("head_dim")
        sizes = _transformers().MarianConfig(
            vocab_size=config.source_vocab,
            decoder_vocab_size=config.target_vocab,
            share_encoder_decoder_embeddings=config.source_vocab == config.target_vocab,
            max_position_embeddings=architecture.number("context_length"),
            d_model=width,
            encoder_layers=architecture.number("encoder.layers"),
            encoder_attention_heads=heads,
            encoder_ffn_dim=architecture.number("encoder.ffn_dim"),
            decoder_layers=architecture.number("decoder.layers"),
            decoder_attention_heads=heads,
            decoder_ffn_dim=architecture.number("decoder.ffn_dim"),
            activation_function="swish",  # of OPUS-MT
            scale_embedding=True,
            pad_token_id=0,
            decoder_start_token_id=0,
        )
        return _transformers().MarianMTModel(sizes).eval()  # type: ignore[no-any-return]

    def exports(
        self, space: SearchSpace, architecture: Architecture, config: TranslationWorkloadConfig
    ) -> list[WorkloadPart]:
        raise ConfigError(
            "translation networks of Marian cannot be exported by nas-ext; run 'nas-ext extract', and export the"
            " extracted folder with another tool for models of transformers"
        )


def _transformers() -> Any:
    return require("transformers", "translation networks of Marian", "hf")


def _translation(architecture: Architecture) -> Architecture:
    """Return the architecture of :mod:`nas_core.models.translation` with the same layers."""
    width = architecture.number("embed_dim")
    genes: dict[str, Any] = {"qkv_dim": width}
    for side in ("encoder", "decoder"):
        depth = architecture.number(f"{side}.layers")
        genes |= {f"{side}.embed_dim": width, f"{side}.layers": depth}
        genes[f"{side}.ffn_dim"] = (architecture.number(f"{side}.ffn_dim"),) * depth
        genes[f"{side}.self_heads"] = (width // architecture.number("head_dim"),) * depth
    genes["decoder.cross_heads"] = genes["decoder.self_heads"]
    genes["decoder.arbitrary_cross"] = (-1,) * len(genes["decoder.self_heads"])
    return Architecture(genes)


MARIAN = _MarianKind()
