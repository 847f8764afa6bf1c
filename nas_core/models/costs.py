"""Costs of an architecture, whichever network it is of."""

from __future__ import annotations

from nas_core.models.image import costs as image
from nas_core.models.translation import costs as translation
from nas_core.models.translation.costs import Lengths
from nas_core.space import Architecture

__all__ = ["flops_g", "params_m"]


def params_m(architecture: Architecture) -> float:
    """Millions of parameters: of translation networks without embeddings and output projection, of image networks
    with a classifier of ten classes.

    Raises:
        ArchitectureError: a gene of its network is missing.
    """
    return image.params_m(architecture) if _is_image(architecture) else translation.params_m(architecture)


def flops_g(architecture: Architecture, lengths: Lengths | None = None) -> float:
    """Billions of FLOPs: of a sentence of those lengths without the output projection, or of an image.

    Raises:
        ArchitectureError: a gene of its network is missing.
    """
    return image.flops_g(architecture) if _is_image(architecture) else translation.flops_g(architecture, lengths)


def _is_image(architecture: Architecture) -> bool:
    return "patch_size" in architecture
