"""Safe reading and atomic writing of image model checkpoints."""
# A checkpoint has timm's keys (`state_dict`, `state_dict_ema`, `arch`, `epoch`) and the model's settings as
# `nas_ext_image`, in safetensors as metadata.

from __future__ import annotations

import argparse
import inspect
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import timm
import torch
from safetensors import SafetensorError, safe_open
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from nas_core.errors import CheckpointError, DataError, NasExtError
from nas_core.files.archives import DAMAGED_ARCHIVE, check_archive
from nas_core.files.reading import parse_json
from nas_core.files.writing import atomic_output
from nas_core.layers.weights import check_finite
from nas_core.space import Architecture
from nas_core.space.files import space_to_dict
from nas_core.space.image import static_image_space
from timm_ext.model import MISFITS, VisionModel

SETTINGS_KEY = "nas_ext_image"
VERSION = 1
SETTINGS = "settings_of_file"
"""Buffer with a model's settings as JSON bytes, so that checkpoints of timm's trainer contain them."""

_ARGUMENTS = {
    "search_space",
    "subnet",
    *inspect.signature(VisionTransformer).parameters,
    *inspect.signature(VisionModel).parameters,
} - {"block_fn", "device", "dtype", "embed_layer", "mlp_layer", "prepared", "space", "unknown"}
"""Model arguments allowed in a checkpoint; none of them makes timm read weights or an address."""


def save_checkpoint(path: Path, model: VisionModel, **content: Any) -> None:
    """Write a checkpoint with the model's weights and settings, and further ``content``."""
    state = {"state_dict": model.state_dict(), **content, SETTINGS_KEY: {"version": VERSION, **model.settings()}}
    with atomic_output(path) as temporary:
        torch.save(state, temporary)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint of ``timm_ext.train`` or timm's trainer, with the model's settings under ``nas_ext_image``."""
    state, metadata = read_file(path)
    if path.suffix == ".safetensors":
        state = {"state_dict": state}
        if SETTINGS_KEY in metadata:
            state[SETTINGS_KEY] = _parse_settings(metadata[SETTINGS_KEY], path)
    if not isinstance(state.get("state_dict"), dict):
        raise CheckpointError(f"{path} has no model; expected a checkpoint of timm_ext.train or of timm's trainer")
    settings = state["state_dict"].pop(SETTINGS, None)
    (state.get("state_dict_ema") or {}).pop(SETTINGS, None)
    if SETTINGS_KEY not in state:
        state[SETTINGS_KEY] = _settings_of_timm(state, path) if settings is None else settings_in(settings, path)
    if state[SETTINGS_KEY].get("version") != VERSION:
        raise CheckpointError(
            f"{path} has settings of version {state[SETTINGS_KEY].get('version')}, but this release reads version"
            f" {VERSION}; upgrade nas-ext"
        )
    return state


def settings_in(buffer: Tensor, path: Path | str) -> dict[str, Any]:
    return _parse_settings(bytes(buffer.flatten().tolist()).decode(errors="replace"), path)


def settings_buffer(settings: dict[str, Any]) -> Tensor:
    return torch.tensor(list(json.dumps({"version": VERSION, **settings}).encode()), dtype=torch.uint8)


def read_file(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the content and the metadata of a torch or safetensors file."""
    if not path.is_file():
        raise DataError(
            f"{path} does not exist; give a checkpoint of timm_ext.train or of timm's trainer, or a weight file"
        )
    try:
        if path.suffix == ".safetensors":
            with safe_open(path, "pt") as file:
                metadata = dict(file.metadata() or {})
            return safetensors.torch.load_file(path), metadata
        check_archive(path)
        torch.serialization.add_safe_globals([argparse.Namespace])  # timm's options
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (*DAMAGED_ARCHIVE, SafetensorError, pickle.UnpicklingError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise CheckpointError(f"{path} cannot be read as a checkpoint ({reason}); it may be truncated") from None
    if not isinstance(state, dict):
        raise CheckpointError(f"{path} has no model; expected a checkpoint of timm_ext.train or of timm's trainer")
    return state, {}


def _parse_settings(settings: str, path: Path | str) -> dict[str, Any]:
    try:
        return dict(parse_json(settings))
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"the network settings in {path} are damaged ({error}); give an undamaged copy of the file"
        ) from None


def _settings_of_timm(state: dict[str, Any], path: Path) -> dict[str, Any]:
    args = vars(state["args"]) if isinstance(state.get("args"), argparse.Namespace) else {}
    name = str(args.get("model") or state.get("arch"))
    bias = state["state_dict"].get("net.head.bias")
    arguments = {"num_classes": 0 if bias is None else len(bias), "global_pool": args.get("gp")}
    arguments |= {key: args.get(key) for key in ("img_size", "in_chans")} | dict(args.get("model_kwargs") or {})
    with torch.device("meta"):
        model = create(name, arguments, path)
    if not isinstance(model, VisionModel):
        raise CheckpointError(f"{path} is a checkpoint of model {name!r}; expected a model that timm_ext registers")
    return {"version": VERSION, **model.settings()}


def create(name: str, arguments: Mapping[str, Any], path: Path) -> nn.Module:
    """Build the model that a checkpoint names, with random weights.

    Raises:
        CheckpointError: timm has no such model, or an argument could load other files.
    """
    if not timm.is_model(name):
        raise CheckpointError(
            f"{path} is a checkpoint of model {name[:80]!r}, which timm does not have; give a checkpoint of a model in"
            " timm.list_models()"
        )
    if forbidden := sorted(map(str, arguments.keys() - _ARGUMENTS)):
        raise CheckpointError(
            f"{path} has the model argument {forbidden[0][:80]!r}, which a checkpoint may not set; expected only sizes"
            " and settings of a vision transformer"
        )
    try:
        model: nn.Module = timm.create_model(name, pretrained=False, **arguments)
    except NasExtError:
        raise
    except MISFITS as error:
        raise CheckpointError(
            f"{path} is a checkpoint of model {name!r}, which timm cannot build ({error}); use the timm release that"
            " wrote it"
        ) from None
    return model


def build(state: dict[str, Any], path: Path, ema: bool = False) -> VisionModel:
    """Build the model of a checkpoint; ``ema`` prefers moving-average weights."""
    model = VisionModel.from_settings(state[SETTINGS_KEY])
    load_weights(model, state, path, ema)
    return model


def load_weights(model: nn.Module, state: dict[str, Any], path: Path, ema: bool = False) -> None:
    """Load the weights of a checkpoint with content ``state`` into a model; ``ema`` prefers moving-average weights."""
    weights: dict[str, Tensor] = (state.get("state_dict_ema") if ema else None) or state["state_dict"]
    try:
        check_finite(weights, path)
        model.load_state_dict(weights)
    except (AttributeError, RuntimeError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise CheckpointError(
            f"the weights in {path} do not fit this network ({reason}); give a checkpoint of a network with the same"
            " settings"
        ) from None


def load_model(path: str | Path, ema: bool = True) -> VisionModel:
    """Load the model of a checkpoint or an extracted subnet, in evaluation mode.

    Args:
        ema: load moving-average weights if the file has them.
    """
    return build(read_checkpoint(Path(path)), Path(path), ema).eval()


def write_subnet(model: VisionModel, architecture: Architecture, path: str | Path, arch: str = "") -> int:
    """Write a subnet as a static model without experts; return its number of parameters.

    Args:
        path: new file, ``.pt`` or ``.safetensors``.
        arch: timm's name of the model, stored in the file.
    """
    space = space_to_dict(static_image_space(architecture))
    arguments = {**model.settings()["arguments"], "layer_order": ()}
    static = VisionModel.from_settings({"space": space, "arguments": arguments})
    static.net.load_state_dict(model.net.static_state(architecture))
    path = Path(path)
    if path.suffix == ".safetensors":
        settings = json.dumps({"version": VERSION, **static.settings()})
        with atomic_output(path) as temporary:
            safetensors.torch.save_file(static.state_dict(), temporary, {"format": "pt", SETTINGS_KEY: settings})
    else:
        save_checkpoint(path, static, arch=arch, epoch=0)
    return sum(parameter.numel() for parameter in static.parameters())
