"""Network kind of translation transformers, and their graphs with one node per sublayer.

A cross-attention node has edges from the feed-forward nodes of the encoder layers that it attends to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nas_core.errors import ArchitectureError
from nas_core.graph.graph import Graph
from nas_core.layers.attention.kinds import ATTENTION_KINDS
from nas_core.models.kind import ModelKind, WorkloadPart, layered_genes
from nas_core.models.translation import costs
from nas_core.models.translation.genes import (
    GENES,
    ROLES,
    check_translation_space,
    decoder_layers,
    encoder_layers,
)
from nas_core.models.translation.net import TranslationNet
from nas_core.models.translation.workload import TranslationWorkload, TranslationWorkloadConfig
from nas_core.space import Architecture, SearchSpace
from nas_core.space.hat import READ_LAYERS

# First operations; attention is softmax unless its name has another type.
_FIRST = (
    "source_embedding",
    "encoder_self_attention",
    "encoder_feed_forward",
    "target_embedding",
    "decoder_self_attention",
    "cross_attention",
    "decoder_feed_forward",
    "output",
)
ATTRIBUTES = ("width", "heads", "qkv_dim", "ffn_dim", "memories")
"""Columns of ``attributes`` in graphs.

``qkv_dim`` is the query width; ``memories`` is the number of encoder layers that cross-attention attends to.
"""
SCALES = (512.0, 8.0, 512.0, 2048.0, 3.0)


def operations() -> tuple[str, ...]:
    named = [kind.operation(p) for _, kind in ATTENTION_KINDS.items() for p in ROLES.values() if p in kind.roles]
    return tuple(dict.fromkeys((*_FIRST, *named)))


def translation_graph(architecture: Architecture) -> Graph:
    """Return the graph with ``3 + 2 * encoder layers + 3 * decoder layers`` nodes and :data:`ATTRIBUTES` ``(N, 5)``."""
    kinds, names, ops = dict(ATTENTION_KINDS.items()), operations(), list[int]()
    numbers: list[tuple[int, ...]] = []
    edges: list[tuple[int, int]] = []

    def operation_of(kind: str, role: str) -> str:
        if kind not in kinds or role not in kinds[kind].roles:
            supported = [name for name, member in kinds.items() if role in member.roles]
            raise ArchitectureError(f"attention is {kind!r}; expected one of {supported}")
        return kinds[kind].operation(role)

    def add(operation: str, width: int, *sizes: int, previous: int | None = None) -> int:
        node = len(ops)
        ops.append(names.index(operation))
        numbers.append((width, *sizes, *[0] * (len(ATTRIBUTES) - 1 - len(sizes))))
        edges.extend([] if previous is None else [(previous, node)])
        return node

    width = architecture.number("encoder.embed_dim")
    node = add("source_embedding", width)
    encoder: list[int] = []
    for layer in encoder_layers(architecture):
        node = add(operation_of(layer.attention, "encoder"), width, layer.heads, layer.qkv_dim, previous=node)
        node = add("encoder_feed_forward", width, 0, 0, layer.ffn_dim, previous=node)
        encoder.append(node)
    width = architecture.number("decoder.embed_dim")
    node = add("target_embedding", width)
    for decoder_layer in decoder_layers(architecture):
        node = add(
            operation_of(decoder_layer.attention, "decoder"),
            width,
            decoder_layer.heads,
            decoder_layer.qkv_dim,
            previous=node,
        )
        cross = operation_of(decoder_layer.cross_attention, "cross")
        node = add(
            cross, width, decoder_layer.cross_heads, decoder_layer.cross_qkv_dim, 0, decoder_layer.reads, previous=node
        )
        edges.extend((memory, node) for memory in encoder[-decoder_layer.reads :])
        node = add("decoder_feed_forward", width, 0, 0, decoder_layer.ffn_dim, previous=node)
    add("output", width, previous=node)
    return Graph(ops, edges, attributes=np.array(numbers) / SCALES)


class _TranslationKind(ModelKind):
    name = "translation"
    genes = GENES
    params_description = "parameters without embeddings"
    attributes = ATTRIBUTES
    workload_config = TranslationWorkloadConfig
    check = staticmethod(check_translation_space)
    graph = staticmethod(translation_graph)
    weights = staticmethod(costs.weight_numbers)
    activation_numel = staticmethod(costs.activation_numel)
    workload = staticmethod(TranslationWorkload)

    @property
    def operations(self) -> tuple[str, ...]:
        return operations()

    def params_m(self, architecture: Architecture) -> float:
        return costs.parameters(architecture) / 1e6

    def flops_g(self, architecture: Architecture) -> float:
        return costs.flops(architecture) / 1e9

    def cache(self, architecture: Architecture, config: TranslationWorkloadConfig) -> int:
        return sum(costs.cache_numbers(architecture, config))

    def build(
        self, space: SearchSpace, architecture: Architecture, config: TranslationWorkloadConfig
    ) -> TranslationNet:
        static = SearchSpace.of(architecture, like=space)
        return TranslationNet(static, config.source_vocab, config.target_vocab).eval()

    def exports(
        self, space: SearchSpace, architecture: Architecture, config: TranslationWorkloadConfig
    ) -> list[WorkloadPart]:
        from nas_core.models.translation.export import part_inputs, translation_parts

        architecture = space.validate(architecture)
        net = self.build(space, architecture, config)
        encoder, step = translation_parts(net, architecture, config.source_length, config.target_length)
        # at least one past word: ONNX files cannot have empty inputs
        stream, lengths = torch.Generator().manual_seed(0), (config.source_length, max(1, config.target_length // 2))
        return [
            WorkloadPart("encoder", encoder.module, part_inputs(encoder, *lengths, 1, stream)),
            WorkloadPart(
                "decoder", step.module, part_inputs(step, *lengths, config.beam, stream), config.target_length
            ),
        ]

    def layers(self, architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
        sides = layered_genes(architecture)
        for side, genes in sides.items():
            renamed = {"encoder layers read" if gene == "arbitrary_cross" else gene: genes[gene] for gene in genes}
            if "arbitrary_cross" in genes:
                renamed["encoder layers read"] = tuple(READ_LAYERS.get(v, v) for v in genes["arbitrary_cross"])
            sides[side] = renamed
        return sides


TRANSLATION = _TranslationKind()
