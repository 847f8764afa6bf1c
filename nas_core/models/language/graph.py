"""Language models as graphs, one node for each sublayer.

Nodes, in order: embedding; per layer self-attention and feed-forward network; output projection. A sublayer's residual
sum and normalisation belong to its node, as in :mod:`nas_core.models.translation.graph`, so the graph is a chain.

Numbers of a node are divided by fixed sizes (``SCALES``), those of GPT-2 small (Radford et al. 2019), so that graphs of
different spaces are comparable; 0 where a node has no such size.
"""

from __future__ import annotations

import numpy as np

from nas_core.errors import ArchitectureError
from nas_core.graph.graph import Graph
from nas_core.layers.attention.kinds import KINDS
from nas_core.models.language.genes import attention_options
from nas_core.space import Architecture, SearchSpace
from nas_core.space.stack import transformer_layers

__all__ = ["ATTRIBUTES", "SCALES", "language_graph", "operations", "operations_of"]

_FIRST = ("embedding", "decoder_self_attention", "decoder_feed_forward", "output")
"""Names of the operation indices 0 to 3; attention is softmax where its name does not say which."""
ATTRIBUTES = ("width", "heads", "qkv_dim", "ffn_dim", "context_length")
"""Columns of ``attributes``: embedding size; heads and joint width of queries, keys and values of an attention; hidden
size of a feed-forward network; longest sequence in tokens."""
SCALES = (768.0, 12.0, 768.0, 3072.0, 1024.0)
"""By what each column is divided."""


def operations() -> tuple[str, ...]:
    """Names of the operation indices, from 0: those of further kinds of attention stand behind the first four."""
    own = [kind.operation("decoder") for _, kind in KINDS.items() if "decoder" in kind.places]
    return tuple(dict.fromkeys((*_FIRST, *own)))


def operations_of(space: SearchSpace) -> int:
    """Count the operation indices that graphs of a space may have: those before the last one that it chooses."""
    names = operations()
    chosen = {KINDS.get(kind).operation("decoder") for layer in attention_options(space) for kind in layer}
    return 1 + max(names.index(name) for name in (*_FIRST, *chosen))


def language_graph(architecture: Architecture) -> Graph:
    """The graph of 2 + 2 (layers) nodes, with ``attributes`` (N, 5).

    Raises:
        ArchitectureError: no architecture, a gene of language models is missing or has not one option per layer, or a
            kind of attention is unknown.
    """
    if not isinstance(architecture, Architecture):
        raise ArchitectureError(f"got {type(architecture).__name__}; expected an Architecture of a language space")
    width, context = architecture.number("embed_dim"), architecture.number("context_length")
    nodes: list[tuple[str, tuple[int, ...]]] = [("embedding", (width, 0, 0, 0, context))]
    for layer in transformer_layers(architecture):
        if layer.attention not in KINDS.names() or "decoder" not in (kind := KINDS.get(layer.attention)).places:
            known = [name for name, kind in KINDS.items() if "decoder" in kind.places]
            raise ArchitectureError(f"an attention is {layer.attention!r}; expected one of {known}")
        nodes.append((kind.operation("decoder"), (width, layer.heads, layer.qkv_dim, 0, context)))
        nodes.append(("decoder_feed_forward", (width, 0, 0, layer.ffn_dim, context)))
    nodes.append(("output", (width, 0, 0, 0, context)))
    names = operations()
    ops = [names.index(operation) for operation, _ in nodes]
    chain = [(node, node + 1) for node in range(len(nodes) - 1)]
    return Graph(ops, chain, attributes=np.array([sizes for _, sizes in nodes]) / SCALES)
