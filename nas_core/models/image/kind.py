"""Image networks as a kind of network."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from nas_core.graph.graph import Graph
from nas_core.models.image import costs, graph, memory
from nas_core.models.image.export import ImageModel
from nas_core.models.image.genes import GENES, check_image_space
from nas_core.models.image.workload import ImageWorkload, ImageWorkloadConfig, images, static_net
from nas_core.models.kind import OnePassKind
from nas_core.space import Architecture, SearchSpace

_LAYERED = ("ffn_dim", "mlp_ratio", "heads", "attention")


class _ImageKind(OnePassKind):
    """Vision transformers over the genes of :mod:`nas_core.space.image`; costs with a classifier of ten classes."""

    name = "image"
    genes = GENES.names
    counted = "parameters with a classifier of ten classes"
    attributes = graph.ATTRIBUTES
    workload_config = ImageWorkloadConfig
    operations_of = staticmethod(graph.operations_of)
    params_m = staticmethod(costs.params_m)
    flops_g = staticmethod(costs.flops_g)
    weights = staticmethod(memory.weight_numbers)
    live = staticmethod(memory.live_numbers)
    workload = staticmethod(ImageWorkload)

    @property
    def operations(self) -> tuple[str, ...]:
        return graph.operations()

    def check(self, space: SearchSpace) -> None:
        check_image_space(space)

    def graph(self, architecture: Architecture) -> Graph:
        return graph.image_graph(architecture)

    def build(self, space: SearchSpace, architecture: Architecture, config: ImageWorkloadConfig) -> ImageModel:
        return ImageModel(static_net(architecture, config), architecture).eval()

    def inputs(self, architecture: Architecture, config: ImageWorkloadConfig) -> tuple[Tensor, ...]:
        return (images(architecture, config),)

    def layers(self, architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
        """Kinds of attention are shown also where all layers have the same."""
        depth = architecture.number("layers")
        genes = {name: architecture[name] for name in _LAYERED if name in architecture}
        return {"": {name: gene if isinstance(gene, tuple) else (gene,) * depth for name, gene in genes.items()}}


IMAGE = _ImageKind()
