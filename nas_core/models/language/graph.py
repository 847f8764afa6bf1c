"""Language models as graphs, one node for each sublayer.

Nodes, in order: embedding; per layer self-attention and feed-forward network; output projection. A sublayer's residual
sum and normalisation belong to its node, as in :mod:`nas_core.models.translation.graph`, so the graph is a chain.

Numbers of a node are divided by fixed sizes (``SCALES``), those of GPT-2 small (Radford et al. 2019), so that graphs of
different spaces are comparable; 0 where a node has no such size.
"""

from __future__ import annotations

from nas_core.errors import ArchitectureError
from nas_core.graph.graph import Graph
from nas_core.models.graph import ChainGraphs
from nas_core.models.language.genes import GENES
from nas_core.space import Architecture
from nas_core.space.stack import transformer_layers

_FIRST = ("embedding", "decoder_self_attention", "decoder_feed_forward", "output")
"""Names of the operation indices 0 to 3; attention is softmax where its name does not say which."""
ATTRIBUTES = ("width", "heads", "qkv_dim", "ffn_dim", "context_length")
"""Columns of ``attributes``: embedding size; heads and joint width of queries, keys and values of an attention; hidden
size of a feed-forward network; longest sequence in tokens."""
SCALES = (768.0, 12.0, 768.0, 3072.0, 1024.0)
"""By what each column is divided."""


_GRAPHS = ChainGraphs(GENES, _FIRST, SCALES)
operations, operations_of = _GRAPHS.operations, _GRAPHS.operations_of


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
        _, operation = _GRAPHS.attention(layer.attention)
        nodes.append((operation, (width, layer.heads, layer.qkv_dim, 0, context)))
        nodes.append(("decoder_feed_forward", (width, 0, 0, layer.ffn_dim, context)))
    nodes.append(("output", (width, 0, 0, 0, context)))
    return _GRAPHS.chain(nodes)
