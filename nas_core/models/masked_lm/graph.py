"""Masked language models as graphs, one node for each sublayer.

Nodes, in order: embedding of tokens; per layer self-attention and feed-forward network; the head that predicts tokens.
A sublayer's residual sum and normalisation belong to its node, as in :mod:`nas_core.models.translation.graph`, so the
graph is a chain.

Numbers of a node are divided by fixed sizes (``SCALES``), those of RoBERTa's base network for 512 tokens, so that
graphs of different spaces are comparable; 0 where a node has no such size.
"""

from __future__ import annotations

import numpy as np

from nas_core.errors import ArchitectureError
from nas_core.graph.graph import Graph
from nas_core.layers.attention.kinds import KINDS
from nas_core.models.masked_lm.genes import PLACE, attention_options
from nas_core.space import Architecture, SearchSpace
from nas_core.space.stack import transformer_layers

__all__ = ["ATTRIBUTES", "SCALES", "masked_lm_graph", "operations", "operations_of"]

_FIRST = ("token_embedding", "encoder_self_attention", "encoder_feed_forward", "token_head")
"""Names of the operation indices 0 to 3; attention is softmax where its name does not say which."""
ATTRIBUTES = ("width", "heads", "qkv_dim", "ffn_dim", "length")
"""Columns of ``attributes``: embedding size; heads and joint width of queries, keys and values of an attention; hidden
size of a feed-forward network; tokens that a node reads."""
SCALES = (768.0, 12.0, 768.0, 3072.0, 512.0)
"""By what each column is divided."""


def operations() -> tuple[str, ...]:
    """Names of the operation indices, from 0: those of further kinds of attention stand behind the first four."""
    own = [kind.operation(PLACE) for _, kind in KINDS.items() if PLACE in kind.places]
    return tuple(dict.fromkeys((*_FIRST, *own)))


def operations_of(space: SearchSpace) -> int:
    """Count the operation indices that graphs of a space may have: those before the last one that it chooses."""
    names = operations()
    chosen = {KINDS.get(kind).operation(PLACE) for layer in attention_options(space) for kind in layer}
    return 1 + max(names.index(name) for name in (*_FIRST, *chosen))


def masked_lm_graph(architecture: Architecture) -> Graph:
    """The graph of 2 + 2 (layers) nodes, with ``attributes`` (N, 5).

    Raises:
        ArchitectureError: no architecture, a gene of masked language models is missing or has not one option per
            layer, or a kind of attention is unknown.
    """
    if not isinstance(architecture, Architecture):
        raise ArchitectureError(
            f"got {type(architecture).__name__}; expected an Architecture of a space of masked language models"
        )
    width, length = architecture.number("embed_dim"), architecture.number("sequence_length")
    nodes: list[tuple[str, tuple[int, ...]]] = [("token_embedding", (width, 0, 0, 0, length))]
    for layer in transformer_layers(architecture):
        if layer.attention not in KINDS.names() or PLACE not in (kind := KINDS.get(layer.attention)).places:
            known = [name for name, kind in KINDS.items() if PLACE in kind.places]
            raise ArchitectureError(f"an attention is {layer.attention!r}; expected one of {known}")
        nodes.append((kind.operation(PLACE), (width, layer.heads, layer.qkv_dim, 0, length)))
        nodes.append(("encoder_feed_forward", (width, 0, 0, layer.ffn_dim, length)))
    nodes.append(("token_head", (width, 0, 0, 0, length)))
    names = operations()
    ops = [names.index(operation) for operation, _ in nodes]
    chain = [(node, node + 1) for node in range(len(nodes) - 1)]
    return Graph(ops, chain, attributes=np.array([sizes for _, sizes in nodes]) / SCALES)
