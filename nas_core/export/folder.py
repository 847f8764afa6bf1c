"""Export of a model into a folder, and default sizes of its dimensions."""

from __future__ import annotations

import glob
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nas_core import __version__
from nas_core.errors import ConfigError, DataError, unknown_choice
from nas_core.export.parts import Exportable, ExportModule
from nas_core.export.program import OPSET, check_onnx, check_program, trace, write_onnx
from nas_core.files.reading import read_json, real_path
from nas_core.files.writing import os_errors, write_json
from nas_core.locks import file_lock
from nas_core.optional import require

TARGETS = ("onnx", "torch-export")
FORMAT = "nas-ext/export"
DESCRIPTION = "model.json"
LENGTH = 30
"""Default number of tokens of a sentence, and of the context of a decoding step."""
_ENDINGS = {"onnx": ".onnx", "torch-export": ".pt2"}
# Names of exported files. The list in a damaged model.json may contain others.
_NAMES = re.compile(r"model\.json|\w+\.(onnx|onnx\.data|pt2)|dict(\.[\w.-]+)?\.txt", re.ASCII)


@dataclass(frozen=True)
class ExportResult:
    """Files of an export, their size in MB, and their differences from PyTorch."""

    files: tuple[str, ...]
    megabytes: float
    differences: dict[str, float]
    """Largest difference of each part's outputs from PyTorch, divided by max(1, largest absolute output)."""


def check_target(out: Path, to: str) -> None:
    if to not in TARGETS:
        raise unknown_choice("export format", to, TARGETS)
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out} is a file; give a folder")
    if out.is_dir() and any(out.iterdir()) and not _is_export(out):
        raise ConfigError(f"--out {out} contains files that are not part of an export; give a new or an empty folder")
    for module in ("onnx", "onnxscript", "onnxruntime") if to == "onnx" else ():
        require(module, "exporting to ONNX", "onnx")


def _read_description(folder: Path) -> dict[str, Any] | None:
    """Return the content of ``model.json``; None if the folder contains no export."""
    try:
        content = read_json(folder / DESCRIPTION)
    except DataError:
        return None
    return content if isinstance(content, dict) and content.get("format") == FORMAT else None


def _is_export(out: Path) -> bool:
    files = (_read_description(out) or {}).get("files")
    return isinstance(files, list) and all(
        path.name in (DESCRIPTION, *files) and _NAMES.fullmatch(path.name) and path.is_file() and not path.is_symlink()
        for path in out.iterdir()
    )


def write_export(model: Exportable, out: Path, to: str = "onnx") -> ExportResult:
    """Export a model into a folder and compare the outputs of its files with PyTorch.

    Each part of the model becomes one file, described in ``model.json``. An earlier export is replaced at the end.

    Args:
        to: ``onnx`` or ``torch-export``.

    Raises:
        ExportError: an output differs from PyTorch. Nothing is written.
        ConfigError: ``out`` contains files that are not part of an export, or another process exports into it.
        UnknownChoiceError: ``to`` is unknown.
        MissingHostError: onnx, onnxscript or onnxruntime is not installed.
    """
    check_target(out, to)
    out = real_path(out)
    lock = out.with_name(f".{out.name}.lock")
    with os_errors("write", out), file_lock(lock, f"exports into {out}", "give another folder"):
        out.parent.mkdir(parents=True, exist_ok=True)
        for leftover in out.parent.glob(f".{glob.escape(out.name)}.{'?' * 8}.part"):  # by an export that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        new = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}.", suffix=".part"))
        try:
            new.chmod(0o755)
            differences = {part.name: _write_part(part, new, to) for part in model.parts}
            for name, text in model.texts.items():
                (new / name).write_text(text, encoding="utf-8")
            files = tuple(sorted(path.name for path in new.iterdir()))
            write_json(new / DESCRIPTION, _description(model, to, files, differences))
            size = sum(path.stat().st_size for path in new.iterdir())
            _replace(new, out)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return ExportResult((*files, DESCRIPTION), size / 1e6, differences)


def _write_part(part: ExportModule, folder: Path, to: str) -> float:
    path = folder / f"{part.name}{_ENDINGS[to]}"
    program = trace(part)
    if to == "onnx":
        write_onnx(program, part, path)
        return check_onnx(path, part)
    torch.export.save(program, path)
    return check_program(path, part)


def _description(model: Exportable, to: str, files: tuple[str, ...], differences: dict[str, float]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": 1,
        "to": to,
        **({"opset": OPSET} if to == "onnx" else {}),
        **model.info,
        "parts": {
            part.name: {
                "file": f"{part.name}{_ENDINGS[to]}",
                "inputs": [value.describe() for value in part.inputs],
                "outputs": [value.describe() for value in part.outputs],
                "largest": {dim.name: dim.largest for dim in part.dims if dim.largest is not None},
                "difference_to_torch": differences[part.name],
            }
            for part in model.parts
        },
        "files": list(files),
        "made_by": {"nas-ext": __version__, "torch": str(torch.__version__)},
    }


def _replace(new: Path, out: Path) -> None:
    if not out.is_dir():
        new.replace(out)
        return
    old = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}.", suffix=".old"))
    out.replace(old)
    try:
        new.replace(out)
    except BaseException:
        old.replace(out)
        raise
    shutil.rmtree(old, ignore_errors=True)


def default_sizes(path: Path, shapes: Mapping[str, Sequence[int] | int], batch: int | None = None) -> dict[str, int]:
    """Return sizes for the open dimensions that ``shapes`` and ``batch`` leave unset: batch size 1, 30 tokens.

    Args:
        path: ONNX file. The result is empty if :func:`write_export` did not write it.
        shapes, batch: see :func:`nas_core.graph.onnx.reader.read_onnx`.
    """
    parts = (_read_description(path.parent) or {"parts": {}})["parts"].values()
    part = next((part for part in parts if part["file"] == path.name), None)
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
    return {name: min(_default_size(name), largest.get(name, _default_size(name))) for name in sorted(names)}


def _default_size(name: str) -> int:
    # source_x3 joins the tokens of three encoder layers
    return 1 if name == "batch" else LENGTH * int(name.partition("_x")[2] or 1)
