"""Search spaces and architectures as flat parameters, for other frameworks.

A label is a gene name (``encoder.embed_dim``), followed by the layer index for genes of each layer
(``encoder.ffn_dim.0``).
"""

from __future__ import annotations

from nas_core.space.architecture import Architecture, Option
from nas_core.space.space import SearchSpace


def options_by_label(space: SearchSpace) -> dict[str, tuple[Option, ...]]:
    """Return options by label (gene, and layer if any), for the largest number of layers."""
    rows = [options for choice in space.choices for options in choice.options]
    return dict(zip(space.feature_names("layers"), rows, strict=True))


def parameters_of(space: SearchSpace, architecture: Architecture) -> dict[str, Option]:
    """Return an architecture's options by label, without absent layers."""
    parameters: dict[str, Option] = {}
    for choice in space.choices:
        gene = architecture[choice.name]
        if isinstance(gene, tuple):
            parameters |= {f"{choice.name}.{layer}": option for layer, option in enumerate(gene)}
        else:
            parameters[choice.name] = gene
    return parameters
