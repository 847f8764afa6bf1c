"""Network kinds of masked language models and BERT encoders, and their graphs."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from nas_core.graph.graph import Graph
from nas_core.models.genes import ChainGraphs
from nas_core.models.kind import FormulaKind, OnePassKind
from nas_core.models.masked_lm import costs
from nas_core.models.masked_lm.export import MaskedLMModel
from nas_core.models.masked_lm.genes import BERT_GENES, GENES, check_bert_space, check_masked_lm_space
from nas_core.models.masked_lm.workload import HEAD, MaskedLMWorkload, MaskedLMWorkloadConfig, sequences, timed_net
from nas_core.space import Architecture, SearchSpace
from nas_core.space.bert import encoder_layers, layer_widths, network_width

ATTRIBUTES = ("width", "heads", "qkv_dim", "ffn_dim", "length")
"""Columns of ``attributes`` in graphs. ``qkv_dim`` is the query width."""
SCALES = (768.0, 12.0, 768.0, 3072.0, 512.0)
GRAPHS = ChainGraphs(GENES, ("token_embedding", "encoder_self_attention", "encoder_feed_forward", "token_head"), SCALES)


def masked_lm_graph(architecture: Architecture) -> Graph:
    """Return the graph with ``2 + 2 * layers`` nodes and :data:`ATTRIBUTES` ``(N, 5)``."""
    width, length = network_width(architecture), architecture.number("sequence_length")
    nodes: list[tuple[str, tuple[int, ...]]] = [("token_embedding", (width, 0, 0, 0, length))]
    for w, layer in zip(layer_widths(architecture), encoder_layers(architecture), strict=True):
        _, operation = GRAPHS.attention(layer.attention)
        nodes.append((operation, (w, layer.heads, layer.qkv_dim, 0, length)))
        nodes.append(("encoder_feed_forward", (w, 0, 0, layer.ffn_dim, length)))
    nodes.append(("token_head", (width, 0, 0, 0, length)))
    return GRAPHS.chain(nodes)


class _MaskedLMKind(FormulaKind, OnePassKind):
    name = "masked_lm"
    genes = GENES.names
    params_description = "parameters without tables of tokens and positions"
    attributes = ATTRIBUTES
    vocabularies = ("vocab",)
    workload_config = MaskedLMWorkloadConfig
    costs, graphs = costs, GRAPHS
    check = staticmethod(check_masked_lm_space)
    graph = staticmethod(masked_lm_graph)
    weights = staticmethod(costs.weight_numbers)
    activation_numel = staticmethod(costs.activation_numel)
    workload = staticmethod(MaskedLMWorkload)

    def build(self, space: SearchSpace, architecture: Architecture, config: MaskedLMWorkloadConfig) -> MaskedLMModel:
        head = HEAD if config.classes else None
        return MaskedLMModel(timed_net(space, architecture, config), architecture, head).eval()

    def inputs(self, architecture: Architecture, config: MaskedLMWorkloadConfig) -> tuple[Tensor, ...]:
        return (sequences(architecture, config),)

    def layers(self, architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
        genes = encoder_layers(architecture)
        names = ("ffn_dim", "heads", "attention")
        return {"": {name: tuple(getattr(layer, name) for layer in genes) for name in names}}


class _BertKind(_MaskedLMKind):
    name = "bert"
    genes = BERT_GENES.names
    check = staticmethod(check_bert_space)

    def layers(self, architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
        return {"": {"hidden_dim": layer_widths(architecture), **super().layers(architecture)[""]}}


MASKED_LM = _MaskedLMKind()
BERT = _BertKind()
