"""Image transformers as graphs, one node for each sublayer.

Nodes, in order: patch embedding; per layer self-attention and feed-forward network; pooling of the patches' tokens;
classifier. A sublayer's residual sum and normalisation belong to its node, as in
:mod:`nas_core.models.translation.graph`, so the graph is a chain; the last norm belongs to the pooling.

Numbers of a node are divided by fixed sizes (``SCALES``), those of a small vision transformer for images of 224 pixels
(Touvron et al. 2021, DeiT-S), so that graphs of different spaces are comparable; 0 where a node has no such size.
"""

from __future__ import annotations

import numpy as np

from nas_core.errors import ArchitectureError
from nas_core.graph.graph import Graph
from nas_core.layers.attention import KINDS
from nas_core.models.image.genes import attention_options
from nas_core.space import Architecture, SearchSpace
from nas_core.space.image import image_layers, token_grid

__all__ = ["ATTRIBUTES", "SCALES", "image_graph", "operations", "operations_of"]

_FIRST = ("patch_embedding", "image_self_attention", "feed_forward", "pooling", "classifier")
"""Names of the operation indices 0 to 4; attention is softmax where its name does not say which."""
ATTRIBUTES = ("width", "heads", "qkv_dim", "ffn_dim", "patches", "patch_size", "relative_clip")
"""Columns of ``attributes``: embedding size; heads and joint width of queries, keys and values of an attention; hidden
size of a feed-forward network; patches along each side of the image that a node reads; pixels along each side of a
patch; farthest distance of relative positions in softmax attention."""
SCALES = (384.0, 6.0, 384.0, 1536.0, 14.0, 16.0, 14.0)
"""By what each column is divided."""


def operations() -> tuple[str, ...]:
    """Names of the operation indices, from 0: those of further kinds of attention stand behind the first five."""
    own = [kind.operation("image") for _, kind in KINDS.items() if "image" in kind.places]
    return tuple(dict.fromkeys((*_FIRST, *own)))


def operations_of(space: SearchSpace) -> int:
    """Count the operation indices that graphs of a space may have: those before the last one that it chooses."""
    names = operations()
    chosen = {KINDS.get(kind).operation("image") for layer in attention_options(space) for kind in layer}
    return 1 + max(names.index(name) for name in (*_FIRST, *chosen))


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
        if layer.attention not in KINDS.names() or "image" not in (kind := KINDS.get(layer.attention)).places:
            known = [name for name, kind in KINDS.items() if "image" in kind.places]
            raise ArchitectureError(f"an attention is {layer.attention!r}; expected one of {known}")
        distance = clip if kind.takes_relative else 0
        nodes.append((kind.operation("image"), (width, layer.heads, layer.qkv_dim, 0, grid, 0, distance)))
        nodes.append(("feed_forward", (width, 0, 0, layer.ffn_dim, grid, 0, 0)))
    nodes += [("pooling", (width, 0, 0, 0, grid, 0, 0)), ("classifier", (width, 0, 0, 0, 0, 0, 0))]
    names = operations()
    ops = [names.index(operation) for operation, _ in nodes]
    chain = [(node, node + 1) for node in range(len(nodes) - 1)]
    return Graph(ops, chain, attributes=np.array([sizes for _, sizes in nodes]) / SCALES)
