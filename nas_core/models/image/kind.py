"""Network kind of image transformers, and their graphs with one node per sublayer."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from nas_core.graph.graph import Graph
from nas_core.models.genes import ChainGraphs
from nas_core.models.image import costs
from nas_core.models.image.export import ImageModel
from nas_core.models.image.net import GENES, check_image_space
from nas_core.models.image.workload import ImageWorkload, ImageWorkloadConfig, images, static_net
from nas_core.models.kind import FormulaKind, OnePassKind
from nas_core.space import Architecture, SearchSpace
from nas_core.space.image import image_layers, token_grid

ATTRIBUTES = ("width", "heads", "qkv_dim", "ffn_dim", "patches", "patch_size", "relative_clip")
"""Columns of ``attributes`` in graphs.

``qkv_dim`` is the query width; ``patches`` counts patches per image side.
"""
SCALES = (384.0, 6.0, 384.0, 1536.0, 14.0, 16.0, 14.0)
GRAPHS = ChainGraphs(
    GENES, ("patch_embedding", "image_self_attention", "feed_forward", "pooling", "classifier"), SCALES
)
_LAYERED = ("ffn_dim", "mlp_ratio", "heads", "attention")


def image_graph(architecture: Architecture) -> Graph:
    """Return the graph with ``3 + 2 * layers`` nodes and :data:`ATTRIBUTES` ``(N, 7)``."""
    width, clip = architecture.number("embed_dim"), architecture.number("relative_clip")
    grid = token_grid(architecture)
    nodes: list[tuple[str, tuple[int, ...]]] = [
        ("patch_embedding", (width, 0, 0, 0, grid, architecture.number("patch_size"), 0))
    ]
    for layer in image_layers(architecture):
        kind, operation = GRAPHS.attention(layer.attention)
        distance = clip if kind.takes_relative else 0
        nodes.append((operation, (width, layer.heads, layer.qkv_dim, 0, grid, 0, distance)))
        nodes.append(("feed_forward", (width, 0, 0, layer.ffn_dim, grid, 0, 0)))
    nodes += [("pooling", (width, 0, 0, 0, grid, 0, 0)), ("classifier", (width, 0, 0, 0, 0, 0, 0))]
    return GRAPHS.chain(nodes)


class _ImageKind(FormulaKind, OnePassKind):
    name = "image"
    genes = GENES.names
    params_description = "parameters with a classifier of ten classes"
    attributes = ATTRIBUTES
    workload_config = ImageWorkloadConfig
    costs, graphs = costs, GRAPHS
    check = staticmethod(check_image_space)
    graph = staticmethod(image_graph)
    activation_numel = staticmethod(costs.activation_numel)
    workload = staticmethod(ImageWorkload)

    def weights(self, architecture: Architecture, config: ImageWorkloadConfig) -> int:
        return costs.parameters(architecture, config.classes, config.channels)

    def build(self, space: SearchSpace, architecture: Architecture, config: ImageWorkloadConfig) -> ImageModel:
        return ImageModel(static_net(architecture, config), architecture).eval()

    def inputs(self, architecture: Architecture, config: ImageWorkloadConfig) -> tuple[Tensor, ...]:
        return (images(architecture, config),)

    def layers(self, architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
        depth = architecture.number("layers")
        genes = {name: architecture[name] for name in _LAYERED if name in architecture}
        return {"": {name: gene if isinstance(gene, tuple) else (gene,) * depth for name, gene in genes.items()}}


IMAGE = _ImageKind()
