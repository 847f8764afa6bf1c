"""Default sizes of the dimensions of an exported file that have no fixed size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nas_core.errors import DataError
from nas_core.export.folder import DESCRIPTION, FORMAT
from nas_core.files.reading import read_json

LENGTH = 30
"""Default number of tokens of a sentence, and of the context of a decoding step."""


def usual_sizes(path: Path, shapes: Mapping[str, Sequence[int] | int], batch: int | None = None) -> dict[str, int]:
    """Return sizes for the open dimensions that ``shapes`` and ``batch`` leave unset: batch size 1, 30 tokens.

    Args:
        path: ONNX file. The result is empty if :func:`~nas_core.export.write_export` did not write it.
        shapes, batch: see :func:`nas_core.graph.onnx.reader.read_onnx`.
    """
    part = _part(path)
    if part is None:
        return {}
    inputs, largest = {value["name"]: value["shape"] for value in part["inputs"]}, part["largest"]
    bound = set(shapes)
    for name, dims in inputs.items():
        if name in shapes:
            bound |= {dim for dim in dims if isinstance(dim, str)}
        elif batch is not None and dims and isinstance(dims[0], str):
            bound.add(dims[0])
    names = {dim for dims in inputs.values() for dim in dims if isinstance(dim, str)} - bound
    return {name: min(_usual(name), largest.get(name, _usual(name))) for name in sorted(names)}


def _usual(name: str) -> int:
    # source_x3 joins the tokens of three encoder layers
    return 1 if name == "batch" else LENGTH * int(name.partition("_x")[2] or 1)


def _part(path: Path) -> Any:
    try:
        content = read_json(path.parent / DESCRIPTION)
    except DataError:
        return None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return None
    return next((part for part in content["parts"].values() if part["file"] == path.name), None)
