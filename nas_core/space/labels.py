"""Options and architectures by label, as spaces and trials of other frameworks have them.

A gene of the whole network has its own name (``encoder.embed_dim``), one that is repeated has its layer behind it, from
0 (``encoder.ffn_dim.0``): these are the names of ``space.feature_names("layers")``.
"""

from __future__ import annotations

from nas_core.space.architecture import Architecture, Option
from nas_core.space.space import SearchSpace


def options_by_label(space: SearchSpace) -> dict[str, tuple[Option, ...]]:
    """What may be chosen for each label, also for those of layers that need not exist."""
    rows = [options for choice in space.choices for options in choice.options]
    return dict(zip(space.feature_names("layers"), rows, strict=True))


def parameters_of(space: SearchSpace, architecture: Architecture) -> dict[str, Option]:
    """What an architecture of the space has for each label of the layers that exist."""
    parameters: dict[str, Option] = {}
    for choice in space.choices:
        gene = architecture[choice.name]
        if isinstance(gene, tuple):
            parameters |= {f"{choice.name}.{layer}": option for layer, option in enumerate(gene)}
        else:
            parameters[choice.name] = gene
    return parameters
