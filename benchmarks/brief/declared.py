"""What a benchmark says of itself for ``make bench``: its small size, what that needs, and the figures to look at."""

from __future__ import annotations

import importlib
import importlib.util
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nas_core.errors import DataError, MissingHostError

__all__ = ["Brief", "Figure", "NoBrief", "declared", "lacking"]

LIMIT_S = 600.0
"""Much longer than any takes where nothing else runs: it ends what hangs."""
PREPARED = "{translation}"
"""Stands in a size for a folder with a translation corpus and a subnet that :mod:`benchmarks.brief.prepared` makes."""


@dataclass(frozen=True)
class Figure:
    """One headline figure of a result: what it says, and where it stands in the JSON."""

    what: str
    path: tuple[str | Mapping[str, Any], ...]
    """Keys from the outside to the inside; a mapping is the only row of a list whose fields have these values."""
    unit: str = "x"

    def read(self, result: Any) -> float | bool:
        """The figure of a result.

        Raises:
            DataError: the result has no such figure.
        """
        found = result
        for step in self.path:
            if isinstance(step, str):
                inside = found.get(step) if isinstance(found, Mapping) else None
            else:
                rows = [row for row in found if all(row.get(key) == value for key, value in step.items())]
                inside = rows[0] if len(rows) == 1 else None
            if inside is None:
                raise DataError(f"the result has no figure {self.what!r}: nothing, or several, at {step!r}")
            found = inside
        if not isinstance(found, int | float) or not math.isfinite(found):
            raise DataError(f"the result has no figure {self.what!r}: {found!r} is no finite number")
        return found


@dataclass(frozen=True)
class Brief:
    """How a benchmark runs in ``make bench``."""

    size: str
    """Its options, as they are typed; :data:`PREPARED` in them is replaced."""
    figures: tuple[Figure, ...]
    modules: tuple[str, ...] = ()
    """What has to be installed."""
    files: tuple[Path, ...] = ()
    """Published tables that have to be there."""
    limit_s: float = LIMIT_S
    """Seconds after which it is ended."""

    def arguments(self, prepared: Path) -> list[str]:
        """The options with the folder that was prepared in them."""
        return [word.replace(PREPARED, str(prepared)) for word in shlex.split(self.size)]


@dataclass(frozen=True)
class NoBrief:
    """Why a benchmark has no small size."""

    reason: str


def declared(module: str) -> Brief | NoBrief:
    """What the module of a benchmark declares as ``BRIEF``; where a package that it imports is not installed, that."""
    try:
        brief: Brief | NoBrief = importlib.import_module(module).BRIEF
    except MissingHostError as error:
        return NoBrief(str(error).splitlines()[0])
    except ModuleNotFoundError as error:
        if str(error.name).startswith(("benchmarks", "nas_core")):
            raise
        return NoBrief(f"it imports {error.name}, which is not installed")
    return brief


def lacking(modules: Sequence[str], files: Sequence[Path]) -> str | None:
    """What of these is missing here, in words; tables by their names, since folders belong to one machine."""
    found = [f"no module {name}" for name in modules if importlib.util.find_spec(name) is None]
    if absent := [file.name for file in files if not file.exists()]:
        found.append(
            f"{', '.join(absent)} {'are' if absent[1:] else 'is'} absent from the folder that NAS_EXT_DATA names"
        )
    return "; ".join(found) or None
