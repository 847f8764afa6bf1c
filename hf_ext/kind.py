"""The kind of decoders of Llama's family: costs by formula, and the time of one decoding step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from hf_ext.per_layer import resize_layers
from nas_core.errors import ConfigError
from nas_core.graph.graph import Graph
from nas_core.models.genes import ChainGraphs, StackGenes
from nas_core.models.kind import ModelKind, WorkloadPart
from nas_core.models.workload import FIRST_WORD, check_minimum, same_draws
from nas_core.optional import require
from nas_core.space import Architecture, SearchSpace
from nas_core.space.stack import per_layer

_CONSTANT = ("head_dim", "heads_per_kv", "context_length")
_NAMES = ("layers", "embed_dim", "kv_heads", "ffn_dim", *_CONSTANT)
GENES = StackGenes("a decoder of Llama's family", _NAMES, _CONSTANT, role="decoder")
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
        check_minimum(self, vocab=FIRST_WORD + 1, length=1, batch=1)


class LlamaWorkload:
    """Workload of a model: the next token, with a cache of the tokens before it.

    Args:
        tokens: token indices (batch, length + 1).
    """

    def __init__(self, model: Any, tokens: Tensor) -> None:
        self._model, self._tokens = model, tokens
        self._read()

    @classmethod
    def random(
        cls, space: SearchSpace, architecture: Architecture, config: LlamaWorkloadConfig, device: str = "cpu"
    ) -> LlamaWorkload:
        """Return the workload of a static network with random weights."""
        with same_draws():
            model = LLAMA.build(space, space.validate(architecture), config).to(device)
            tokens = torch.randint(FIRST_WORD, config.vocab, (config.batch, config.length + 1), device=device)
        return cls(model, tokens)

    def _read(self) -> None:
        """Fill the cache."""
        self._cache = _transformers().DynamicCache(config=self._model.config)
        with torch.no_grad():
            self._model(self._tokens[:, :-1], None, None, self._cache)

    @property
    def modules(self) -> Sequence[nn.Module]:
        return [self._model]

    @property
    def components(self) -> Mapping[str, Callable[[], object]]:
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
    params_description = "parameters without embeddings"
    attributes = ("width", "heads", "kv_heads", "qkv_dim", "ffn_dim", "context_length")
    vocabularies = ("vocab",)
    workload_config = LlamaWorkloadConfig
    workload = staticmethod(LlamaWorkload.random)

    @property
    def operations(self) -> tuple[str, ...]:
        return GRAPHS.operations()

    def check(self, space: SearchSpace) -> None:
        for gene in GENES.names:
            GENES.check_gene(space, gene)

    def params_m(self, architecture: Architecture) -> float:
        """Count parameters without biases, in millions."""
        width = architecture.number("embed_dim")
        return (sum(layer.matrices + 2 * width for layer in _layers(architecture)) + width) / 1e6

    def flops_g(self, architecture: Architecture) -> float:
        tokens, layers = architecture.number("context_length"), _layers(architecture)
        return 2 * sum(tokens * (layer.matrices + (tokens + 1) * layer.queries) for layer in layers) / 1e9

    def weights(self, architecture: Architecture, config: LlamaWorkloadConfig) -> int:
        return super().weights(architecture, config) + config.vocab * architecture.number("embed_dim")

    def cache(self, architecture: Architecture, config: LlamaWorkloadConfig) -> int:
        per_token = 2 * architecture.number("head_dim") * sum(layer.groups for layer in _layers(architecture))
        return per_token * config.batch * (config.length + 1)

    def graph(self, architecture: Architecture) -> Graph:
        """Return the graph of 2 + 2 (layers) nodes, with ``attributes`` (N, 6)."""
        width, context = architecture.number("embed_dim"), architecture.number("context_length")
        _, operation = GRAPHS.attention("softmax")
        ends = (width, 0, 0, 0, 0, context)
        nodes: list[tuple[str, tuple[int, ...]]] = [("embedding", ends)]
        for layer in _layers(architecture):
            nodes.append((operation, (width, layer.heads, layer.groups, layer.queries, 0, context)))
            nodes.append(("decoder_feed_forward", (width, 0, 0, 0, layer.ffn_dim, context)))
        return GRAPHS.chain([*nodes, ("output", ends)])

    def build(self, space: SearchSpace, architecture: Architecture, config: LlamaWorkloadConfig) -> nn.Module:
        layers = _layers(architecture)
        widest = max(layers, key=lambda layer: layer.groups)
        sizes = _transformers().LlamaConfig(
            vocab_size=config.vocab,
            hidden_size=architecture.number("embed_dim"),
            num_hidden_layers=len(layers),
            **{**widest.settings, "intermediate_size": max(layer.ffn_dim for layer in layers)},
            layer_sizes=[layer.settings for layer in layers],
            head_dim=architecture.number("head_dim"),
            max_position_embeddings=architecture.number("context_length"),
            tie_word_embeddings=True,
        )
        model = _transformers().LlamaForCausalLM(sizes)
        if len({*layers}) > 1:
            resize_layers(model, "layers")
        return model.eval()  # type: ignore[no-any-return]

    def exports(
        self, space: SearchSpace, architecture: Architecture, config: LlamaWorkloadConfig
    ) -> list[WorkloadPart]:
        raise ConfigError(
            "decoders of Llama's family cannot be exported by nas-ext; run 'nas-ext extract', and export the extracted"
            " folder with another tool for models of transformers"
        )

    def layers(self, architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
        depth = architecture.number("layers")
        return {"": {gene: tuple(per_layer(architecture, gene, depth)) for gene in ("ffn_dim", "kv_heads")}}


def _transformers() -> Any:
    return require("transformers", "decoders of Llama's family", "hf")


class _Layer(NamedTuple):
    """Sizes of one layer."""

    groups: int
    """Groups of heads with common keys and values."""
    heads: int
    queries: int
    """Joint width of all queries."""
    ffn_dim: int
    matrices: int
    """Number of weights of the linear maps."""

    @property
    def settings(self) -> dict[str, int]:
        """Settings in ``config.json``."""
        heads = {"num_attention_heads": self.heads, "num_key_value_heads": self.groups}
        return {**heads, "intermediate_size": self.ffn_dim}


def _layers(architecture: Architecture) -> list[_Layer]:
    depth, head_dim = architecture.number("layers"), architecture.number("head_dim")
    layers = []
    for groups, ffn_dim in zip(
        *(per_layer(architecture, gene, depth) for gene in ("kv_heads", "ffn_dim")), strict=True
    ):
        heads = groups * architecture.number("heads_per_kv")
        columns = 2 * heads * head_dim + 2 * groups * head_dim + 3 * ffn_dim
        matrices = architecture.number("embed_dim") * columns
        layers.append(_Layer(groups, heads, heads * head_dim, ffn_dim, matrices))
    return layers


LLAMA = _LlamaKind()
