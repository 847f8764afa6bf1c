"""The kind of decoders of Llama's family: costs by formula, and the time of one decoding step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.graph.graph import Graph
from nas_core.models.genes import ChainGraphs, StackGenes
from nas_core.models.kind import ModelKind, SpacePart
from nas_core.models.workload import FIRST_WORD, check_least, same_draws
from nas_core.optional import require
from nas_core.space import Architecture, SearchSpace

_CONSTANT = ("head_dim", "heads_per_kv", "context_length")
_NAMES = ("layers", "embed_dim", "kv_heads", "ffn_dim", *_CONSTANT)
GENES = StackGenes("a decoder of Llama's family", _NAMES, _CONSTANT, place="decoder")
GRAPHS = ChainGraphs(
    GENES,
    ("embedding", "decoder_self_attention", "decoder_feed_forward", "output"),
    (768.0, 12.0, 4.0, 768.0, 3072.0, 1024.0),
)


@dataclass(frozen=True, kw_only=True)
class LlamaWorkloadConfig:
    """Settings of :class:`LlamaWorkload`."""

    vocab: int = 32000
    """Rows of the embedding and of the output projection."""
    length: int = 128
    """Tokens before the decoded one."""
    batch: int = 1
    """Sequences per step."""

    def __post_init__(self) -> None:
        check_least(self, vocab=FIRST_WORD + 1, length=1, batch=1)


class LlamaWorkload:
    """Workload of a static network with random weights: the next token, with a cache of the tokens before it."""

    def __init__(
        self, space: SearchSpace, architecture: Architecture, config: LlamaWorkloadConfig, device: str = "cpu"
    ) -> None:
        with same_draws():
            self._model = LLAMA.build(space, space.validate(architecture), config).to(device)
            self._tokens = torch.randint(FIRST_WORD, config.vocab, (config.batch, config.length + 1), device=device)
        self._read()

    def _read(self) -> None:
        """Fill the cache."""
        self._cache = _transformers().DynamicCache(config=self._model.config)
        with torch.no_grad():
            self._model(self._tokens[:, :-1], None, None, self._cache)

    @property
    def modules(self) -> Sequence[nn.Module]:
        return [self._model]

    @property
    def parts(self) -> Mapping[str, Callable[[], object]]:
        return {"decoding": self.decode}

    def convert(self, dtype: torch.dtype) -> None:
        self._model.to(dtype)
        self._read()

    def decode(self) -> Tensor:
        """Return the logits (batch, 1, vocab) of the next token."""
        logits = self._model(self._tokens[:, -1:], None, None, self._cache).logits
        self._cache.crop(-1)
        return logits  # type: ignore[no-any-return]


class _LlamaKind(ModelKind):
    name = "llama"
    genes = GENES.names
    counted = "parameters without embeddings"
    attributes = ("width", "heads", "kv_heads", "qkv_dim", "ffn_dim", "context_length")
    vocabularies = ("vocab",)
    workload_config = LlamaWorkloadConfig
    workload = staticmethod(LlamaWorkload)

    @property
    def operations(self) -> tuple[str, ...]:
        return GRAPHS.operations()

    def operations_of(self, space: SearchSpace) -> int:
        return GRAPHS.operations_of(space)

    def check(self, space: SearchSpace) -> None:
        for gene in GENES.names:
            GENES.check_gene(space, gene)

    def params_m(self, architecture: Architecture) -> float:
        """Count parameters without biases, in millions."""
        layers, width = architecture.number("layers"), architecture.number("embed_dim")
        return (layers * (_matrices(architecture) + 2 * width) + width) / 1e6

    def flops_g(self, architecture: Architecture) -> float:
        tokens, layers = architecture.number("context_length"), architecture.number("layers")
        attention = tokens * (tokens + 1) * _queries(architecture)
        return 2 * layers * (tokens * _matrices(architecture) + attention) / 1e9

    def weights(self, architecture: Architecture, config: LlamaWorkloadConfig) -> int:
        return super().weights(architecture, config) + config.vocab * architecture.number("embed_dim")

    def cache(self, architecture: Architecture, config: LlamaWorkloadConfig) -> int:
        kept = 2 * architecture.number("kv_heads") * architecture.number("head_dim")
        return architecture.number("layers") * kept * config.batch * (config.length + 1)

    def graph(self, architecture: Architecture) -> Graph:
        """Return the graph of 2 + 2 (layers) nodes, with ``attributes`` (N, 6)."""
        width, context = architecture.number("embed_dim"), architecture.number("context_length")
        groups = architecture.number("kv_heads")
        heads, queries = groups * architecture.number("heads_per_kv"), _queries(architecture)
        _, operation = GRAPHS.attention("softmax")
        layer: list[tuple[str, tuple[int, ...]]] = [
            (operation, (width, heads, groups, queries, 0, context)),
            ("decoder_feed_forward", (width, 0, 0, 0, architecture.number("ffn_dim"), context)),
        ]
        ends = (width, 0, 0, 0, 0, context)
        return GRAPHS.chain([("embedding", ends), *layer * architecture.number("layers"), ("output", ends)])

    def build(self, space: SearchSpace, architecture: Architecture, config: LlamaWorkloadConfig) -> nn.Module:
        groups = architecture.number("kv_heads")
        sizes = _transformers().LlamaConfig(
            vocab_size=config.vocab,
            hidden_size=architecture.number("embed_dim"),
            intermediate_size=architecture.number("ffn_dim"),
            num_hidden_layers=architecture.number("layers"),
            num_attention_heads=groups * architecture.number("heads_per_kv"),
            num_key_value_heads=groups,
            head_dim=architecture.number("head_dim"),
            max_position_embeddings=architecture.number("context_length"),
            tie_word_embeddings=True,
        )
        return _transformers().LlamaForCausalLM(sizes).eval()  # type: ignore[no-any-return]

    def parts(self, space: SearchSpace, architecture: Architecture, config: LlamaWorkloadConfig) -> list[SpacePart]:
        raise ConfigError(
            "decoders of Llama's family cannot be exported by nas-ext; run 'nas-ext extract', and export the extracted"
            " folder with another tool for models of transformers"
        )

    def layers(self, architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
        depth = architecture.number("layers")
        return {"": {gene: (architecture[gene],) * depth for gene in ("ffn_dim", "kv_heads")}}


def _transformers() -> Any:
    return require("transformers", "decoders of Llama's family", "hf")


def _queries(architecture: Architecture) -> int:
    """Return the joint width of all queries."""
    heads = architecture.number("kv_heads") * architecture.number("heads_per_kv")
    return heads * architecture.number("head_dim")


def _matrices(architecture: Architecture) -> int:
    """Count the weights of a layer's linear maps."""
    keys_values = 2 * architecture.number("kv_heads") * architecture.number("head_dim")
    columns = 2 * _queries(architecture) + keys_values + 3 * architecture.number("ffn_dim")
    return architecture.number("embed_dim") * columns


LLAMA = _LlamaKind()
