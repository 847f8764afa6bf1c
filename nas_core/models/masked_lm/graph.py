"""Masked language models as graphs, one node for each sublayer.

Nodes, in order: embedding of tokens; per layer self-attention and feed-forward network; the head that predicts tokens.
A sublayer's residual sum and normalisation belong to its node, as in :mod:`nas_core.models.translation.graph`, so the
graph is a chain. Where layers differ in width, the map between two of them belongs to the node that reads it.

Numbers of a node are divided by fixed sizes (``SCALES``), those of RoBERTa's base network for 512 tokens, so that
graphs of different spaces are comparable; 0 where a node has no such size.
"""

from __future__ import annotations

from nas_core.errors import ArchitectureError
from nas_core.graph.graph import Graph
from nas_core.models.graph import ChainGraphs
from nas_core.models.masked_lm.genes import GENES
from nas_core.space import Architecture
from nas_core.space.bert import encoder_layers, layer_widths, network_width

_FIRST = ("token_embedding", "encoder_self_attention", "encoder_feed_forward", "token_head")
"""Names of the operation indices 0 to 3; attention is softmax where its name does not say which."""
ATTRIBUTES = ("width", "heads", "qkv_dim", "ffn_dim", "length")
"""Columns of ``attributes``: width of the embedding or of the layer; heads and joint width of queries, keys and values
of an attention; hidden size of a feed-forward network; tokens that a node reads."""
SCALES = (768.0, 12.0, 768.0, 3072.0, 512.0)
"""By what each column is divided."""


_GRAPHS = ChainGraphs(GENES, _FIRST, SCALES)
operations, operations_of = _GRAPHS.operations, _GRAPHS.operations_of


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
    width, length = network_width(architecture), architecture.number("sequence_length")
    nodes: list[tuple[str, tuple[int, ...]]] = [("token_embedding", (width, 0, 0, 0, length))]
    for own, layer in zip(layer_widths(architecture), encoder_layers(architecture), strict=True):
        _, operation = _GRAPHS.attention(layer.attention)
        nodes.append((operation, (own, layer.heads, layer.qkv_dim, 0, length)))
        nodes.append(("encoder_feed_forward", (own, 0, 0, layer.ffn_dim, length)))
    nodes.append(("token_head", (width, 0, 0, 0, length)))
    return _GRAPHS.chain(nodes)
