"""Safe reading and atomic writing of image model checkpoints.

A checkpoint has timm's keys (``state_dict``, ``state_dict_ema``, ``arch``, ``epoch``) and the model's settings as
``nas_ext_image``, in safetensors as metadata.
"""

from __future__ import annotations

import argparse
import inspect
import json
import pickle
from collections.abc import Mapping
from contextlib import nullcontext
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
from nas_core.space.choice import MOST_LAYERS
from nas_core.space.files import space_to_dict
from nas_core.space.image import static_image_space
from timm_ext.model import MISFITS, VisionModel

KEY = "nas_ext_image"
VERSION = 1
_OF_DATA = {"data": (str,), "val_data": (str, type(None)), "val_count": (int,), "seed": (int,)}
"""Training settings that determine the validation data, and their types."""
SETTINGS = "settings_of_file"
"""Buffer with a model's settings as JSON bytes; checkpoints of timm's trainer then do not depend on the original
file."""
KEPT = "kept"
"""Folder for ``--keep-every`` in a run folder."""

_ARGUMENTS = {
    "search_space",
    "subnet",
    *inspect.signature(VisionTransformer).parameters,
    *inspect.signature(VisionModel).parameters,
} - {"block_fn", "device", "dtype", "embed_layer", "mlp_layer", "prepared", "space", "unknown"}
"""timm arguments permitted in a file; none names weights, another checkpoint or an address."""
MOST = 2**20
"""Largest number permitted in these arguments."""


def save_checkpoint(path: Path, model: VisionModel, **content: Any) -> None:
    """Write a checkpoint of plain data and tensors; ``state_dict`` defaults to the model's."""
    state = {"state_dict": model.state_dict(), **content, KEY: {"version": VERSION, **model.settings()}}
    with atomic_output(path) as temporary:
        torch.save(state, temporary)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint, with settings under ``nas_ext_image`` also for timm's trainer.

    Raises:
        DataError: the file is missing.
        CheckpointError: the file is damaged, of another model, or contains forbidden objects.
    """
    if not path.is_file():
        raise DataError(f"no file {path}; give a checkpoint of timm_ext.train or of timm's trainer")
    if path.suffix == ".safetensors":
        try:
            weights, metadata = read_file(path)
        except CheckpointError as error:
            raise CheckpointError(f"this is no subnet written by 'nas-ext extract': {error}") from None
        if KEY not in metadata:
            raise CheckpointError(f"{path} is no subnet written by 'nas-ext extract': it has no settings of one")
        return {"state_dict": weights, KEY: _decoded(metadata[KEY], path)}
    state, _ = read_file(path)
    if not isinstance(state.get("state_dict"), dict):
        raise CheckpointError(f"{path} holds no model; expected a checkpoint of timm_ext.train or of timm's trainer")
    run = state.get("train") or {}
    if not isinstance(run, dict) or any(
        type(run.get(name)) not in kinds or (int in kinds and run[name] < 0) for name, kinds in _OF_DATA.items() if run
    ):
        raise CheckpointError(f"{path} has damaged settings of its training; give another checkpoint of it")
    stored = state["state_dict"].pop(SETTINGS, None)
    if isinstance(state.get("state_dict_ema"), dict):
        state["state_dict_ema"].pop(SETTINGS, None)
    if KEY not in state:
        state[KEY] = _settings_of_timm(state, path) if stored is None else settings_in(stored, path)
    return state


def settings_in(buffer: Tensor, path: Path | str) -> dict[str, Any]:
    settings = None
    if isinstance(buffer, Tensor):
        text = bytes(buffer.to("cpu", torch.uint8).flatten().tolist()).decode(errors="replace")
        settings = _decoded(text, Path(path))
    if not isinstance(settings, dict):
        raise CheckpointError(f"{path} has damaged settings of its network; give another checkpoint of the training")
    return settings


def settings_buffer(settings: dict[str, Any]) -> Tensor:
    return torch.tensor(list(json.dumps({"version": VERSION, **settings}).encode()), dtype=torch.uint8)


def read_file(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the content of a torch or safetensors file, and the latter's metadata."""
    try:
        if path.suffix == ".safetensors":
            with safe_open(path, "pt") as file:
                metadata = dict(file.metadata() or {})
            return safetensors.torch.load_file(path), metadata
        # timm's options are a Namespace. Where it is allowed already it stays so, which safe_globals would undo.
        allowed = argparse.Namespace in torch.serialization.get_safe_globals()
        with nullcontext() if allowed else torch.serialization.safe_globals([argparse.Namespace]):
            check_archive(path)
            state = torch.load(path, map_location="cpu", weights_only=True)
    except (*DAMAGED_ARCHIVE, SafetensorError, pickle.UnpicklingError) as error:
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise CheckpointError(f"{path} cannot be read as a checkpoint ({reason}); it may be truncated") from None
    if not isinstance(state, dict):
        raise CheckpointError(f"{path} holds no model; expected a checkpoint of timm_ext.train or of timm's trainer")
    return state, {}


def _decoded(settings: str, path: Path) -> Any:
    try:
        return parse_json(settings)
    except ValueError as error:
        raise CheckpointError(f"{path} has damaged settings of a network ({error}); write it again") from None


def _settings_of_timm(state: dict[str, Any], path: Path) -> dict[str, Any]:
    args = vars(state["args"]) if isinstance(state.get("args"), argparse.Namespace) else {}
    name: Any = args.get("model") or state.get("arch")
    stated = {"img_size": args.get("img_size"), "in_chans": args.get("in_chans"), "global_pool": args.get("gp")}
    bias = state["state_dict"].get("net.head.bias")
    try:
        arguments = {"num_classes": 0 if bias is None else len(bias), **stated, **(args.get("model_kwargs") or {})}
    except TypeError as error:
        raise CheckpointError(f"{path} is of model {name!r}, which cannot be built ({error})") from None
    with torch.device("meta"):
        model = create(str(name), arguments, path)
    if not isinstance(model, VisionModel):
        raise CheckpointError(f"{path} is of model {name!r}; expected one that timm_ext registers")
    return {"version": VERSION, **model.settings()}


def create(name: str, arguments: Mapping[str, Any], path: Path) -> nn.Module:
    """Build a file's model with random weights.

    Arguments may name a local space or architecture file, but no weights, address or hub.

    Raises:
        CheckpointError: timm has no such model, or an argument is forbidden or too large.
    """
    if not timm.is_model(name) or not name.replace(".", "_").replace("-", "_").isidentifier():
        raise CheckpointError(f"{path} is of model {name[:80]!r}, which timm does not know; see timm.list_models()")
    for argument, value in arguments.items():
        if argument not in _ARGUMENTS:
            raise CheckpointError(
                f"{path} gives its model the argument {str(argument)[:80]!r}; expected sizes and settings of a vision"
                " transformer, since no file may name others, or where weights come from"
            )
        most = MOST_LAYERS if argument == "depth" else MOST
        for number in value if isinstance(value, list | tuple) else [value]:
            if isinstance(number, int | float) and abs(number) > most and not argument.endswith("seed"):
                raise CheckpointError(f"{path} gives its model {argument}={str(number)[:20]}; expected {most} at most")
    try:
        model: nn.Module = timm.create_model(name, pretrained=False, **arguments)
    except NasExtError:
        raise
    except MISFITS as error:
        raise CheckpointError(f"{path} is of model {name!r}, which cannot be built ({error})") from None
    return model


def check_fits(state: dict[str, Any], path: Path, ema: bool = False) -> None:
    """Check settings against weights on the meta device, before memory is allocated."""
    settings = state[KEY]
    if not isinstance(settings, dict) or settings.get("version") != VERSION:
        raise CheckpointError(f"{path} has settings of another version; this release reads {VERSION}, upgrade nas-ext")
    with torch.device("meta"):
        load_weights(VisionModel.from_settings(settings), state, path, ema)


def build(state: dict[str, Any], path: Path, ema: bool = False) -> VisionModel:
    """Build a checkpoint's model; ``ema`` prefers moving-average weights."""
    check_fits(state, path, ema)
    model = VisionModel.from_settings(state[KEY])
    load_weights(model, state, path, ema)
    return model


def load_weights(model: VisionModel, state: dict[str, Any], path: Path, ema: bool = False) -> None:
    """Load a checkpoint's weights into a model; ``ema`` prefers moving averages."""
    weights: dict[str, Tensor] = (state.get("state_dict_ema") if ema else None) or state["state_dict"]
    try:
        check_finite(weights, path)
        if next(model.parameters()).is_meta:
            weights = {name: torch.empty_like(tensor, device="meta") for name, tensor in weights.items()}
        model.load_state_dict(weights)
    except (AttributeError, RuntimeError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise CheckpointError(f"{path} does not fit this network ({reason}); give one of the same settings") from None


def load_model(path: str | Path, ema: bool = True) -> VisionModel:
    """Load a checkpoint or an extracted subnet in evaluation mode.

    Raises:
        DataError: the file is missing.
        CheckpointError: the file is damaged or of another model.
    """
    return build(read_checkpoint(Path(path)), Path(path), ema).eval()


def write_subnet(model: VisionModel, architecture: Architecture, path: str | Path, arch: str = "") -> int:
    """Write the collapsed subnet, as safetensors if the path ends so; return its number of parameters.

    Args:
        arch: registered name of the network.
    """
    space = space_to_dict(static_image_space(architecture))
    arguments = {**model.settings()["arguments"], "layer_order": ()}
    static = VisionModel.from_settings({"space": space, "arguments": arguments})
    static.net.load_state_dict(model.net.static_state(architecture))
    path = Path(path)
    if path.suffix == ".safetensors":
        settings = json.dumps({"version": VERSION, **static.settings()})
        with atomic_output(path) as temporary:
            safetensors.torch.save_file(static.state_dict(), temporary, {"format": "pt", KEY: settings})
    else:
        save_checkpoint(path, static, arch=arch, epoch=0)
    return sum(parameter.numel() for parameter in static.parameters())
