"""Search spaces around a trained network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nas_core.errors import SpaceError
from nas_core.files.reading import real_path
from nas_core.space import SearchSpace, get_space
from nas_core.supernet.elastic.space_spec import is_auto, resolve


def space_around(wanted: str, trained: Mapping[str, Any], auto: Callable[[], SearchSpace]) -> SearchSpace:
    """Return a new or existing search space whose largest network is the trained one.

    Args:
        wanted: spec of :func:`nas_core.supernet.elastic.space_spec.resolve`, or the name or file of a space.
        trained: genes of the trained network, which uses softmax attention.
    """
    if is_auto(wanted):
        return resolve(wanted, auto)
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
    """Name a space after the file, or the nearest parent folder without a default name of fairseq."""
    path = real_path(path)
    names = (path.stem, *(folder.name for folder in path.parents))
    return f"around-{next(name for name in names if not name.startswith('checkpoint')) or 'checkpoint'}"


def _differs(wanted: str, gene: str, got: Any, expected: Any) -> SpaceError:
    shown = [list(value) if isinstance(value, tuple) else value for value in (got, expected)]
    return SpaceError(
        f"the largest network of space {wanted} has {gene} = {shown[0]}, the trained one {shown[1]}; its"
        " largest network has to be the trained one"
    )
