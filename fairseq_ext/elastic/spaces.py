"""The space that a trained network becomes the largest one of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nas_core.errors import SpaceError
from nas_core.files import real_path
from nas_core.space import SearchSpace, get_space
from nas_core.supernet.elastic.asked import is_made, made


def space_around(wanted: str, trained: Mapping[str, Any], auto: Callable[[], SearchSpace]) -> SearchSpace:
    """The space made around a network, or the one of that name or file if its largest network is the trained one.

    Args:
        wanted: what :func:`nas_core.supernet.elastic.asked.made` takes, or a space.
        trained: the genes of the trained network; kinds of attention are softmax, which is not said.

    Raises:
        SpaceError: the space lacks a gene, or its largest network is another one. ConfigError: see ``made``.
    """
    if is_made(wanted):
        return made(wanted, auto)
    space = get_space(wanted)
    largest = space.largest()
    for gene, value in trained.items():
        if gene not in largest and gene != "head_dim":
            raise SpaceError(f"space {wanted} has no gene {gene!r}, which the trained network has; give it, or auto")
        if gene in largest and largest[gene] != value:
            raise _differs(wanted, gene, largest[gene], value)
    for gene, value in largest.items():
        if gene.endswith("attention") and set(value if isinstance(value, tuple) else (value,)) != {"softmax"}:
            raise _differs(wanted, gene, value, "softmax")
    return space


def name_around(path: Path) -> str:
    """What the space around a checkpoint's network is called: after the file, or the folder above it whose name is not
    one of fairseq's defaults, which all trainings share (``checkpoints/checkpoint_best.pt``)."""
    path = real_path(path)
    own = (name for name in (path.stem, *(each.name for each in path.parents)) if not name.startswith("checkpoint"))
    return f"around-{next(own) or 'checkpoint'}"


def _differs(wanted: str, gene: str, got: Any, expected: Any) -> SpaceError:
    return SpaceError(
        f"the largest network of space {wanted} has {gene} = {_shown(got)}, the trained one {_shown(expected)}; its"
        " largest network has to be the trained one"
    )


def _shown(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
