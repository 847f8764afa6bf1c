"""Masked language models as a kind of network."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from nas_core.graph.graph import Graph
from nas_core.models.kind import OnePassKind
from nas_core.models.masked_lm import costs, graph, memory
from nas_core.models.masked_lm.export import MaskedLMModel
from nas_core.models.masked_lm.genes import BERT_GENES, GENES, check_bert_space, check_masked_lm_space
from nas_core.models.masked_lm.workload import HEAD, MaskedLMWorkload, MaskedLMWorkloadConfig, sequences, timed_net
from nas_core.space import Architecture, SearchSpace
from nas_core.space.bert import encoder_layers, layer_widths


class _MaskedLMKind(OnePassKind):
    """Bidirectional encoders over the genes of :mod:`nas_core.space.masked_lm`; costs without tables of tokens and
    positions."""

    name = "masked_lm"
    genes = GENES.names
    counted = "parameters without tables of tokens and positions"
    attributes = graph.ATTRIBUTES
    vocabularies = ("vocab",)
    workload_config = MaskedLMWorkloadConfig
    operations_of = staticmethod(graph.operations_of)
    params_m = staticmethod(costs.params_m)
    flops_g = staticmethod(costs.flops_g)
    weights = staticmethod(memory.weight_numbers)
    live = staticmethod(memory.live_numbers)
    workload = staticmethod(MaskedLMWorkload)

    @property
    def operations(self) -> tuple[str, ...]:
        return graph.operations()

    def check(self, space: SearchSpace) -> None:
        check_masked_lm_space(space)

    def graph(self, architecture: Architecture) -> Graph:
        return graph.masked_lm_graph(architecture)

    def build(self, space: SearchSpace, architecture: Architecture, config: MaskedLMWorkloadConfig) -> MaskedLMModel:
        head = HEAD if config.classes else None
        return MaskedLMModel(timed_net(space, architecture, config), architecture, head).eval()

    def inputs(self, architecture: Architecture, config: MaskedLMWorkloadConfig) -> tuple[Tensor, ...]:
        return (sequences(architecture, config),)

    def layers(self, architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
        """Kinds of attention are shown also where all layers have the same."""
        genes = encoder_layers(architecture)
        return {
            "": {name: tuple(getattr(layer, name) for layer in genes) for name in ("ffn_dim", "heads", "attention")}
        }


class _BertKind(_MaskedLMKind):
    """Bidirectional encoders over the genes of :mod:`nas_core.space.bert`; costs without tables of tokens and
    positions."""

    name = "bert"
    genes = BERT_GENES.names

    def check(self, space: SearchSpace) -> None:
        check_bert_space(space)

    def layers(self, architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
        """Widths of layers are shown also where all have one."""
        shown = super().layers(architecture)[""]
        return {"": {"hidden_dim": layer_widths(architecture), **shown}}


MASKED_LM = _MaskedLMKind()
BERT = _BertKind()
