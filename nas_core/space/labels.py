"""Search spaces and architectures as flat parameters, for other frameworks.

A label is a gene name (``encoder.embed_dim``), followed by the layer index for genes of each layer
(``encoder.ffn_dim.0``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nas_core.errors import ArchitectureError
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


def architecture_by(space: SearchSpace, option_of: Callable[[str, tuple[Option, ...]], Any]) -> Architecture:
    """Build an architecture from a function that chooses an option for a label, without calls for absent layers."""
    genes: dict[str, Any] = dict(space.fixed)
    for choice in sorted(space.choices, key=lambda choice: choice.per is not None):  # depths first
        if choice.per is None:
            genes[choice.name] = option_of(choice.name, choice.options[0])
        else:
            layers = enumerate(choice.options[: genes[choice.per]])
            genes[choice.name] = tuple(option_of(f"{choice.name}.{layer}", options) for layer, options in layers)
    return Architecture(genes)


def architecture_of(space: SearchSpace, parameters: Mapping[str, Any]) -> Architecture:
    """Return the architecture with these options by label; labels that are not genes are ignored.

    Raises:
        ArchitectureError: a label is missing, or its value is not in ``space``.
    """

    def option(label: str, options: tuple[Option, ...]) -> Option:
        if parameters.get(label) not in options:
            raise ArchitectureError(
                f"the parameters have {label} = {parameters.get(label)!r}, which is not in space {space.name!r};"
                f" expected one of {list(options)}"
            )
        return options[options.index(parameters[label])]  # 1, not the 1.0 that JSON may have made of it

    return architecture_by(space, option)
