"""Language models as a kind of network."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from nas_core.graph.graph import Graph
from nas_core.models.kind import ModelKind
from nas_core.models.language import costs, graph, memory
from nas_core.models.language.genes import GENES, check_language_space
from nas_core.models.language.net import LanguageNet
from nas_core.models.language.workload import LanguageWorkload, LanguageWorkloadConfig, check_lengths
from nas_core.models.parts import SpacePart
from nas_core.models.static import StaticPass
from nas_core.models.workload import FIRST_WORD, same_draws
from nas_core.space import Architecture, SearchSpace
from nas_core.space.stack import transformer_layers


class _LanguageKind(ModelKind):
    """Decoder-only transformers over the genes of :mod:`nas_core.space.language`; costs without embeddings and output
    projection."""

    name = "language"
    genes = GENES.names
    counted = "parameters without embeddings"
    attributes = graph.ATTRIBUTES
    vocabularies = ("vocab",)
    workload_config = LanguageWorkloadConfig
    operations_of = staticmethod(graph.operations_of)
    params_m = staticmethod(costs.params_m)
    flops_g = staticmethod(costs.flops_g)
    weights = staticmethod(memory.weight_numbers)
    live = staticmethod(memory.live_numbers)
    workload = staticmethod(LanguageWorkload)

    @property
    def operations(self) -> tuple[str, ...]:
        return graph.operations()

    def check(self, space: SearchSpace) -> None:
        check_language_space(space)

    def cache(self, architecture: Architecture, config: LanguageWorkloadConfig) -> int:
        return sum(memory.cache_numbers(architecture, config))

    def graph(self, architecture: Architecture) -> Graph:
        return graph.language_graph(architecture)

    def build(self, space: SearchSpace, architecture: Architecture, config: LanguageWorkloadConfig) -> LanguageNet:
        return LanguageNet(SearchSpace.of(architecture, like=space), config.vocab).eval()

    def parts(self, space: SearchSpace, architecture: Architecture, config: LanguageWorkloadConfig) -> list[SpacePart]:
        """The prompt, and as many steps as new tokens, each with as many past positions as the steps have on
        average."""
        from nas_core.models.language.export import language_parts, part_inputs

        architecture = space.validate(architecture)
        with same_draws():
            net = self.build(space, architecture, config)
        check_lengths(net, config)
        prompt, step = language_parts(net, architecture, config.prompt_length + config.new_tokens)
        stream, position = torch.Generator().manual_seed(0), config.prompt_length + config.new_tokens // 2
        return [
            SpacePart("prompt", prompt.module, part_inputs(prompt, config.prompt_length, config.batch, stream)),
            SpacePart("decoding", step.module, part_inputs(step, position, config.batch, stream), config.new_tokens),
        ]

    def training_pass(
        self, space: SearchSpace, architecture: Architecture, config: LanguageWorkloadConfig, batch: int
    ) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """Sequences as long as prompt and new tokens; the token after each is predicted at once."""
        architecture = space.validate(architecture)
        net = self.build(space, architecture, config)
        check_lengths(net, config)
        tokens = torch.randint(FIRST_WORD, config.vocab, (batch, config.prompt_length + config.new_tokens))
        return StaticPass(net, architecture), (tokens,)

    def layers(self, architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
        """Kinds of attention are shown also where all layers have the same."""
        ffn, heads, _, kinds = zip(*transformer_layers(architecture), strict=True)
        return {"": {"ffn_dim": ffn, "heads": heads, "attention": kinds}}


LANGUAGE = _LanguageKind()
