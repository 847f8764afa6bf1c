"""Costs of an architecture, whichever network it is of."""

from __future__ import annotations

from nas_core.models.kind import kind_of
from nas_core.space import Architecture


def params_m(architecture: Architecture) -> float:
    """Millions of parameters, as its kind counts them: of translation networks without embeddings and output
    projection, of image networks with a classifier of ten classes.

    Raises:
        ArchitectureError: it fits no kind of network.
    """
    return kind_of(architecture).params_m(architecture)


def flops_g(architecture: Architecture) -> float:
    """Billions of FLOPs, as its kind counts them: of a sentence without the output projection, or of an image.

    Raises:
        ArchitectureError: it fits no kind of network.
    """
    return kind_of(architecture).flops_g(architecture)
