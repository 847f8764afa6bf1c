"""Translation networks as a kind of network."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from nas_core.graph.graph import Graph
from nas_core.models.kind import ModelKind, layered_genes
from nas_core.models.parts import SpacePart
from nas_core.models.static import StaticPass
from nas_core.models.translation import costs, graph, memory
from nas_core.models.translation.genes import GENES, check_translation_space
from nas_core.models.translation.net import TranslationNet
from nas_core.models.translation.workload import TranslationWorkload, TranslationWorkloadConfig
from nas_core.models.workload import FIRST_WORD
from nas_core.space import Architecture, SearchSpace
from nas_core.space.hat import READ_LAYERS

_READS = "encoder layers read"


class _TranslationKind(ModelKind):
    """Encoder-decoder transformers over HAT's, mFormer's and MoS's genes; costs without embeddings and output."""

    name = "translation"
    genes = GENES
    counted = "parameters without embeddings"
    attributes = graph.ATTRIBUTES
    workload_config = TranslationWorkloadConfig
    operations_of = staticmethod(graph.operations_of)
    params_m = staticmethod(costs.params_m)
    flops_g = staticmethod(costs.flops_g)
    weights = staticmethod(memory.weight_numbers)
    live = staticmethod(memory.live_numbers)
    workload = staticmethod(TranslationWorkload)

    @property
    def operations(self) -> tuple[str, ...]:
        return graph.operations()

    def check(self, space: SearchSpace) -> None:
        check_translation_space(space)

    def cache(self, architecture: Architecture, config: TranslationWorkloadConfig) -> int:
        return sum(memory.cache_numbers(architecture, config))

    def graph(self, architecture: Architecture) -> Graph:
        return graph.translation_graph(architecture)

    def build(
        self, space: SearchSpace, architecture: Architecture, config: TranslationWorkloadConfig
    ) -> TranslationNet:
        own = SearchSpace.of(architecture, like=space)
        return TranslationNet(own, config.source_vocab, config.target_vocab).eval()

    def parts(
        self, space: SearchSpace, architecture: Architecture, config: TranslationWorkloadConfig
    ) -> list[SpacePart]:
        """The encoder on one sentence, and T decoder steps on ``beam`` hypotheses, each with as many past words as the
        steps have on average (one at least: a file cannot say that an input is empty)."""
        from nas_core.models.translation.export import part_inputs, translation_parts

        architecture = space.validate(architecture)
        net = self.build(space, architecture, config)
        encoder, step = translation_parts(net, architecture, config.source_length, config.target_length)
        stream, lengths = torch.Generator().manual_seed(0), (config.source_length, max(1, config.target_length // 2))
        return [
            SpacePart("encoder", encoder.module, part_inputs(encoder, *lengths, 1, stream)),
            SpacePart("decoder", step.module, part_inputs(step, *lengths, config.beam, stream), config.target_length),
        ]

    def training_pass(
        self, space: SearchSpace, architecture: Architecture, config: TranslationWorkloadConfig, batch: int
    ) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """Pairs of sentences without padding, as long as the workload's; all target words are predicted at once."""
        architecture = space.validate(architecture)
        source = torch.randint(FIRST_WORD, config.source_vocab, (batch, config.source_length))
        target = torch.randint(FIRST_WORD, config.target_vocab, (batch, config.target_length))
        return StaticPass(self.build(space, architecture, config), architecture), (source, target)

    def layers(self, architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
        """HAT's numbers for what a decoder layer reads are shown as numbers of encoder layers."""
        return {
            side: dict((_READS, tuple(READ_LAYERS.get(v, v) for v in values)) if gene == "arbitrary_cross"
                       else (gene, values) for gene, values in genes.items())
            for side, genes in layered_genes(architecture).items()
        }  # fmt: skip


TRANSLATION = _TranslationKind()
