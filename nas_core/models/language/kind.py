"""Network kind of language models, and their graphs with one node per sublayer."""

from __future__ import annotations

from typing import Any

import torch

from nas_core.graph.graph import Graph
from nas_core.models.genes import ChainGraphs
from nas_core.models.kind import FormulaKind, WorkloadPart
from nas_core.models.language import costs
from nas_core.models.language.net import GENES, LanguageNet, check_language_space
from nas_core.models.language.workload import LanguageWorkload, LanguageWorkloadConfig, check_lengths
from nas_core.models.workload import same_draws
from nas_core.space import Architecture, SearchSpace
from nas_core.space.stack import transformer_layers

ATTRIBUTES = ("width", "heads", "qkv_dim", "ffn_dim", "context_length")
"""Columns of ``attributes`` in graphs. ``qkv_dim`` is the query width."""
SCALES = (768.0, 12.0, 768.0, 3072.0, 1024.0)
GRAPHS = ChainGraphs(GENES, ("embedding", "decoder_self_attention", "decoder_feed_forward", "output"), SCALES)


def language_graph(architecture: Architecture) -> Graph:
    """Return the graph with ``2 + 2 * layers`` nodes and :data:`ATTRIBUTES` ``(N, 5)``."""
    width, context = architecture.number("embed_dim"), architecture.number("context_length")
    nodes: list[tuple[str, tuple[int, ...]]] = [("embedding", (width, 0, 0, 0, context))]
    for layer in transformer_layers(architecture):
        _, operation = GRAPHS.attention(layer.attention)
        nodes.append((operation, (width, layer.heads, layer.qkv_dim, 0, context)))
        nodes.append(("decoder_feed_forward", (width, 0, 0, layer.ffn_dim, context)))
    nodes.append(("output", (width, 0, 0, 0, context)))
    return GRAPHS.chain(nodes)


class _LanguageKind(FormulaKind):
    name = "language"
    genes = GENES.names
    params_description = "parameters without embeddings"
    attributes = ATTRIBUTES
    vocabularies = ("vocab",)
    workload_config = LanguageWorkloadConfig
    costs, graphs = costs, GRAPHS
    check = staticmethod(check_language_space)
    graph = staticmethod(language_graph)
    weights = staticmethod(costs.weight_numbers)
    activation_numel = staticmethod(costs.activation_numel)
    cache = staticmethod(costs.cache_numbers)
    workload = staticmethod(LanguageWorkload)

    def build(self, space: SearchSpace, architecture: Architecture, config: LanguageWorkloadConfig) -> LanguageNet:
        return LanguageNet(SearchSpace.of(architecture, like=space), config.vocab).eval()

    def exports(
        self, space: SearchSpace, architecture: Architecture, config: LanguageWorkloadConfig
    ) -> list[WorkloadPart]:
        from nas_core.models.language.export import language_parts, part_inputs

        architecture = space.validate(architecture)
        with same_draws():
            net = self.build(space, architecture, config)
        check_lengths(net, config)
        prompt, step = language_parts(net, architecture, config.prompt_length + config.new_tokens)
        stream, position = torch.Generator().manual_seed(0), config.prompt_length + config.new_tokens // 2
        return [
            WorkloadPart("prompt", prompt.module, part_inputs(prompt, config.prompt_length, config.batch, stream)),
            WorkloadPart("decoding", step.module, part_inputs(step, position, config.batch, stream), config.new_tokens),
        ]

    def layers(self, architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
        ffn, heads, _, kinds = zip(*transformer_layers(architecture), strict=True)
        return {"": {"ffn_dim": ffn, "heads": heads, "attention": kinds}}


LANGUAGE = _LanguageKind()
