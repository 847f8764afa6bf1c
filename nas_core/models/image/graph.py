"""Image transformers as graphs, one node for each sublayer.

Nodes, in order: patch embedding; per layer self-attention and feed-forward network; pooling of the patches' tokens;
classifier. A sublayer's residual sum and normalisation belong to its node, as in
:mod:`nas_core.models.translation.graph`, so the graph is a chain; the last norm belongs to the pooling.

Numbers of a node are divided by fixed sizes (``SCALES``), those of a small vision transformer for images of 224 pixels
(Touvron et al. 2021, DeiT-S), so that graphs of different spaces are comparable; 0 where a node has no such size.
"""

from __future__ import annotations

from nas_core.errors import ArchitectureError
from nas_core.graph.graph import Graph
from nas_core.models.graph import ChainGraphs
from nas_core.models.image.genes import GENES
from nas_core.space import Architecture
from nas_core.space.image import image_layers, token_grid

_FIRST = ("patch_embedding", "image_self_attention", "feed_forward", "pooling", "classifier")
"""Names of the operation indices 0 to 4; attention is softmax where its name does not say which."""
ATTRIBUTES = ("width", "heads", "qkv_dim", "ffn_dim", "patches", "patch_size", "relative_clip")
"""Columns of ``attributes``: embedding size; heads and joint width of queries, keys and values of an attention; hidden
size of a feed-forward network; patches along each side of the image that a node reads; pixels along each side of a
patch; farthest distance of relative positions in softmax attention."""
SCALES = (384.0, 6.0, 384.0, 1536.0, 14.0, 16.0, 14.0)
"""By what each column is divided."""


_GRAPHS = ChainGraphs(GENES, _FIRST, SCALES)
operations, operations_of = _GRAPHS.operations, _GRAPHS.operations_of


def image_graph(architecture: Architecture) -> Graph:
    """The graph of 3 + 2 (layers) nodes, with ``attributes`` (N, 7).

    Raises:
        ArchitectureError: no architecture, a gene of image networks is missing or has not one option per layer, or a
            kind of attention is unknown.
    """
    if not isinstance(architecture, Architecture):
        raise ArchitectureError(f"got {type(architecture).__name__}; expected an Architecture of an image space")
    width, clip = architecture.number("embed_dim"), architecture.number("relative_clip")
    grid = token_grid(architecture)
    nodes: list[tuple[str, tuple[int, ...]]] = [
        ("patch_embedding", (width, 0, 0, 0, grid, architecture.number("patch_size"), 0))
    ]
    for layer in image_layers(architecture):
        kind, operation = _GRAPHS.attention(layer.attention)
        distance = clip if kind.takes_relative else 0
        nodes.append((operation, (width, layer.heads, layer.qkv_dim, 0, grid, 0, distance)))
        nodes.append(("feed_forward", (width, 0, 0, layer.ffn_dim, grid, 0, 0)))
    nodes += [("pooling", (width, 0, 0, 0, grid, 0, 0)), ("classifier", (width, 0, 0, 0, 0, 0, 0))]
    return _GRAPHS.chain(nodes)
