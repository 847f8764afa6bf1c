"""Files of predictors: safetensors with a JSON header and a checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, uint8

from nas_core.errors import ConfigError, DataError
from nas_core.files.reading import parse_json
from nas_core.files.writing import atomic_output

FORMAT = "nas-ext/predictor"
VERSION = 2
_CHECKSUM = "sha256"
NETWORK_LATENCY = "network-latency"


def write_artifact(path: str | Path, kind: str, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write a header and tensors of a ``kind`` of model to a safetensors file."""
    if not str(path).endswith(".safetensors"):
        raise ConfigError(
            f"predictors are saved as safetensors files, got {path}; give a name that ends in .safetensors"
        )
    content = {"format": FORMAT, "version": VERSION, "kind": kind, **header}
    arrays = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # One entry: safetensors writes several in random order, and equal predictors should be equal files.
    text = json.dumps({**content, _CHECKSUM: _checksum(json.dumps(content), arrays)})
    with atomic_output(path) as temporary:
        save_file(arrays, temporary, metadata={"nas_ext": text})


def _checksum(header: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(header.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"|{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        digest.update(tensor.reshape(-1).view(uint8).numpy().data)
    return digest.hexdigest()


def read_artifact(path: str | Path, kind: str | Collection[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the header and the tensors of a file of :func:`write_artifact`.

    Args:
        kind: required ``kind`` of the file, or several allowed ones.

    Raises:
        DataError: the file is missing, damaged or of another kind.
    """
    if not Path(path).is_file():
        raise DataError(f"file not found: {path}; train one with 'nas-ext lab predictor train'")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            # Cloned: products of weights that are unaligned in the file differ in the last bit on some processors.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, OSError, ValueError) as error:
        raise DataError(f"{path} is not a complete safetensors file ({error}); train it again") from None
    try:
        header = parse_json(metadata["nas_ext"])
        identity = (header["format"], header["kind"])
    except (KeyError, TypeError, ValueError):
        raise DataError(f"{path} is not a predictor; train one with 'nas-ext lab predictor train'") from None
    kinds = (kind,) if isinstance(kind, str) else tuple(kind)
    if identity == (FORMAT, NETWORK_LATENCY) and NETWORK_LATENCY not in kinds:
        raise DataError(
            f"{path} is a latency model of networks, not an accuracy predictor; use it with 'nas-ext latency predict'"
            " or nni_ext.NetworkLatencyProfiler"
        )
    if identity[0] != FORMAT or identity[1] not in kinds:
        expected = " or ".join(map(repr, kinds))
        raise DataError(
            f"{path} holds a {identity[1]!r} in format {identity[0]!r}; expected a {expected} in {FORMAT!r}"
        )
    if (version := header.get("version")) != VERSION:
        raise DataError(
            f"{path} has version {version!r}, but this release reads {VERSION}; upgrade nas-ext, or fit the"
            " predictor again"
        )
    if header.pop(_CHECKSUM, None) != _checksum(json.dumps(header), tensors):
        raise DataError(f"{path} is damaged: its content does not match its checksum; restore it, or fit it again")
    return header, tensors


def below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names have a prefix, without the prefix."""
    return {name[len(prefix) :]: value for name, value in tensors.items() if name.startswith(prefix)}
