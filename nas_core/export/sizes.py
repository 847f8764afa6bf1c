"""Sizes for the dimensions that an exported file leaves open, from the ``model.json`` beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nas_core.errors import DataError
from nas_core.export.folder import DESCRIPTION, FORMAT
from nas_core.files import read_json

LENGTH = 30
"""Words of a sentence, and words behind a decoding step; so many are what ``nas-ext latency collect`` translates."""


def usual_sizes(path: Path, shapes: Mapping[str, Sequence[int] | int], batch: int | None = None) -> dict[str, int]:
    """Numbers for all open dimensions of one file of an export that are not given otherwise: one sentence of 30 words,
    or as many as the model takes if these are fewer. Empty for any file that is none of an export.

    Args:
        path: of the ONNX file.
        shapes, batch: what is given, as :func:`nas_core.graph.onnx.read_onnx` takes it.

    Raises:
        DataError: ``model.json`` is one of an export, but damaged.
    """
    part = _part(path)
    if part is None:
        return {}
    try:
        inputs = {str(value["name"]): list(value["shape"]) for value in part["inputs"]}
        largest = {str(name): int(most) for name, most in part["largest"].items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise DataError(f"{path.parent / DESCRIPTION} is damaged; export the model again") from None
    given = set(shapes)
    for name, dims in inputs.items():
        if name in shapes:
            given |= {dim for dim in dims if isinstance(dim, str)}
        elif batch is not None and dims and isinstance(dims[0], str):
            given.add(dims[0])
    names = {dim for dims in inputs.values() for dim in dims if isinstance(dim, str)} - given
    return {name: min(_usual(name), largest.get(name, _usual(name))) for name in sorted(names)}


def _usual(name: str) -> int:
    """``source_x3``: a decoder layer reads the outputs of three encoder layers, one behind the other."""
    times = name.partition("_x")[2]
    return 1 if name == "batch" else LENGTH * (int(times) if times.isdecimal() and len(times) < 4 else 1)


def _part(path: Path) -> Any:
    """What ``model.json`` says of the file; None where there is none, or it is not one of an export."""
    beside = path.parent / DESCRIPTION
    if not beside.is_file():
        return None
    try:
        content = read_json(beside)
    except DataError:
        return None  # of something else
    if not isinstance(content, dict) or content.get("format") != FORMAT or not isinstance(content.get("parts"), dict):
        return None
    parts = [part for part in content["parts"].values() if isinstance(part, dict)]
    return next((part for part in parts if part.get("file") == path.name), None)
