"""Reading of trained timm models: checkpoints of timm's trainer, and weight files."""

from __future__ import annotations

import argparse
import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import timm
import torch
from timm.data import resolve_data_config
from torch import Tensor, nn

from nas_core.errors import CheckpointError
from nas_core.files.reading import parse_json, read_bytes
from nas_core.layers.weights import check_finite
from timm_ext.checkpoint import SETTINGS_KEY, create, read_file
from timm_ext.model import PREPARED
from timm_ext.trained.vit import check_supported

_WEIGHTS = ("state_dict_ema", "model_ema", "state_dict", "model")
"""Keys under which a checkpoint may store weights, in timm's order of preference."""
_PREFIXES = ("module.", "_orig_mod.")


@dataclass(frozen=True)
class Source:
    """Trained model in evaluation mode."""

    model: nn.Module
    name: str
    """timm's name of the model."""
    prepared: Mapping[str, Any] = field(default_factory=dict)
    """Image preprocessing by timm's names (``mean``, ``std``, ..)."""
    data: str = ""
    """Path of the training images, if known."""
    label: str = ""
    """File or name of the model, for error messages."""


def source_of(model: nn.Module, name: str = "") -> Source:
    configuration = getattr(model, "pretrained_cfg", None) or {}
    name = name or str(configuration.get("architecture") or type(model).__name__)
    check_supported(model, name)
    model = copy.deepcopy(model).eval()
    return Source(model, name, _preprocessing_of(model), label=name)


def _preprocessing_of(model: nn.Module, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    config = resolve_data_config(dict(options or {}), model=model)
    return {name: list(value) if isinstance(value := config[name], tuple) else value for name in PREPARED}


def read_source(path: Path, elastic: bool = True) -> Source:
    """Load a model from a checkpoint of timm's trainer (moving-average weights if present) or a weight file.

    The name of the model is read from the checkpoint, the safetensors metadata, a ``config.json`` in the same folder,
    or the file name (``vit_small_patch16_224.pth``).

    Args:
        elastic: raise a CheckpointError if the model cannot be converted to a supernet.
    """
    content, metadata = read_file(path)
    if SETTINGS_KEY in content or SETTINGS_KEY in metadata:
        raise CheckpointError(f"{path} is a checkpoint of timm_ext; expected a checkpoint of timm's trainer")
    weights = _weights(content, path)
    check_finite(weights, path)
    try:
        name, arguments, options = _description(content, metadata, path)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"the model settings in {path} are damaged ({error}); give an undamaged copy of the file"
        ) from None
    with torch.device("meta"):
        arguments = _with_sizes(arguments, weights, create(name, arguments, path))
    model, label = create(name, arguments, path), f"{path} ({name})"
    if elastic:
        check_supported(model, label)
    try:
        model.load_state_dict({key: tensor.float() for key, tensor in weights.items()})
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise CheckpointError(
            f"{path} does not fit timm's model {name} ({reason}); give a checkpoint of this model"
        ) from None
    data = str(options.get("data_dir") or options.get("data") or "")
    specified = {key: options[key] for key in PREPARED if options.get(key) is not None}
    return Source(model.eval(), name, _preprocessing_of(model, specified), data, label)


def _with_sizes(arguments: Mapping[str, Any], weights: Mapping[str, Tensor], model: nn.Module) -> dict[str, Any]:
    # timm's trainer does not store all arguments; the others follow from the shapes of weights.
    sizes, expected = dict(arguments), model.state_dict()
    different = {name for name in expected.keys() & weights.keys() if expected[name].shape != weights[name].shape}
    if "head.weight" in weights:
        sizes.setdefault("num_classes", len(weights["head.weight"]))
    elif "head.weight" in expected:
        sizes["num_classes"] = 0
    patches = weights.get("patch_embed.proj.weight")
    if "patch_embed.proj.weight" in different:
        sizes["in_chans"] = patches.shape[1]
    if "pos_embed" in different and patches is not None and "img_size" not in sizes:
        count, registers = weights["pos_embed"].shape[1], weights.get("reg_token")
        prefix = int("cls_token" in weights) + (0 if registers is None else registers.shape[1])
        grids = [number for number in (count - prefix, count) if number > 0 and math.isqrt(number) ** 2 == number]
        if grids:
            sizes["img_size"] = math.isqrt(grids[0]) * patches.shape[-1]
    return sizes


def _weights(content: Mapping[str, Any], path: Path) -> dict[str, Tensor]:
    weights = next((content[key] for key in _WEIGHTS if isinstance(content.get(key), Mapping)), content)
    if not weights or not all(isinstance(tensor, Tensor) for tensor in weights.values()):
        raise CheckpointError(f"{path} has no weights; expected a checkpoint of timm's trainer, or a state dict")
    for prefix in _PREFIXES:
        weights = {key.removeprefix(prefix): tensor for key, tensor in weights.items()}
    return weights


def _description(
    content: Mapping[str, Any], metadata: Mapping[str, str], path: Path
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    args = content.get("args")
    if isinstance(args, argparse.Namespace) or isinstance(content.get("arch"), str):
        options = vars(args) if isinstance(args, argparse.Namespace) else {}
        arguments = dict(content.get("model_kwargs") or options.get("model_kwargs") or {})
        channels = options.get("in_chans") or (options.get("input_size") or [None])[0]
        trained = {"in_chans": channels, "global_pool": options.get("gp")}
        specified = {key: value for key, value in trained.items() if value is not None}
        options = {**(content.get("pretrained_cfg") or {}), **options}
        return str(content.get("arch") or options.get("model")), {**specified, **arguments}, options
    if "arch" in metadata:
        kwargs, options = (dict(parse_json(metadata.get(key, "{}"))) for key in ("model_kwargs", "pretrained_cfg"))
        return metadata["arch"], kwargs, options
    if (config := path.with_name("config.json")).is_file():
        return _hub_description(config)
    name = path.name.split(".")[0]
    if timm.is_model(name):
        return name, {}, {}
    raise CheckpointError(
        f"{path} does not name its model; give a checkpoint of timm's trainer, copy the model's config.json into the"
        " same folder, or name the file after the model (vit_small_patch16_224.pth)"
    )


def _hub_description(config: Path) -> tuple[str, dict[str, Any], dict[str, Any]]:
    content = parse_json(read_bytes(config))
    sizes = {key: content[key] for key in ("num_classes", "global_pool") if content.get(key) is not None}
    settings, options = (dict(content.get(key) or {}) for key in ("model_args", "pretrained_cfg"))
    return str(content["architecture"]), sizes | settings, options
