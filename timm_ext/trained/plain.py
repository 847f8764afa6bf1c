"""Subnets as timm's own ``VisionTransformer``, which loads them without this project.

    timm.create_model(arch, checkpoint_path=FILE, **model_kwargs)

``arch`` and ``model_kwargs`` are entries of the checkpoint, or metadata of safetensors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.files.writing import atomic_output
from nas_core.models.image.net import VisionNet
from nas_core.space import Architecture
from nas_core.space.image import image_layers
from timm_ext.trained.reading import PREPARED

_BY_EPS = {1e-6: "vit_base_patch16_224", 1e-5: "vit_base_patch16_clip_224"}
"""timm's models by the eps of their layer norms, which timm has no argument for."""


def write_plain(net: VisionNet, architecture: Architecture, prepared: Mapping[str, Any], path: Path) -> int:
    """Write a subnet for timm, as safetensors if the path ends so; return its number of parameters.

    Args:
        prepared: image preprocessing, stored as ``pretrained_cfg``.
    """
    name, arguments = plain_arguments(net, architecture)
    state = plain_state(net, architecture)
    configuration = {key: prepared[key] for key in PREPARED if prepared.get(key) is not None}
    with atomic_output(path) as temporary:
        if path.suffix == ".safetensors":
            texts = {"model_kwargs": json.dumps(arguments), "pretrained_cfg": json.dumps(configuration)}
            safetensors.torch.save_file(state, temporary, {"format": "pt", "arch": name, **texts})
        else:
            description = {"arch": name, "model_kwargs": arguments, "pretrained_cfg": configuration}
            torch.save({"state_dict": state, **description}, temporary)
    return sum(tensor.numel() for tensor in state.values())


def plain_arguments(net: VisionNet, architecture: Architecture) -> tuple[str, dict[str, Any]]:
    """Return the name and JSON-serialisable arguments of ``timm.create_model`` for a subnet."""
    if differences := list(_differences(net, architecture)):
        raise ConfigError(f"this subnet is no VisionTransformer of timm's: {'; '.join(differences)}; leave out --plain")
    config, layer = net.config, image_layers(architecture)[0]
    width, ratio = architecture.number("embed_dim"), layer.ffn_dim / architecture.number("embed_dim")
    if int(width * ratio) != layer.ffn_dim:  # timm rounds down
        ratio = (layer.ffn_dim + 0.5) / width
    height, across = (side * net.patch_size for side in net.grid)
    return _BY_EPS[config.norm_eps], {
        "img_size": height if height == across else [height, across],
        "patch_size": net.patch_size,
        "in_chans": config.channels,
        "num_classes": config.classes,
        "global_pool": config.pool,
        "embed_dim": width,
        "depth": architecture.number("layers"),
        "num_heads": layer.heads,
        "mlp_ratio": ratio,
        "class_token": config.class_token,
        "reg_tokens": config.registers,
        "pre_norm": config.norm_embedding,
        "fc_norm": config.norm_after_pool,
        "act_layer": config.activation,
    }


def _differences(net: VisionNet, architecture: Architecture) -> Iterator[str]:
    layers, width = image_layers(architecture), architecture.number("embed_dim")
    hidden, heads = {layer.ffn_dim for layer in layers}, {layer.heads for layer in layers}
    for sizes, name in ((hidden, "hidden units"), (heads, "heads")):
        if len(sizes) > 1:
            yield f"its layers have {', '.join(map(str, sorted(sizes)))} {name}, timm's as many each"
    if wrong := next((layer.qkv_dim for layer in layers if layer.qkv_dim != width), 0):
        yield f"its heads are {wrong} wide together, timm's as wide as the tokens, {width}"
    if others := sorted({layer.attention for layer in layers} - {"softmax"}):
        yield f"it has {', '.join(others)} attention"
    if architecture.number("relative_clip"):
        yield "it has relative positions"
    if net.config.norm_eps not in _BY_EPS:
        yield f"its norms add {net.config.norm_eps:g}, timm's 1e-06 or 1e-05"


def plain_state(net: VisionNet, architecture: Architecture) -> dict[str, Tensor]:
    """Return a subnet's weights under timm's names; the embedding's scale is multiplied into them."""
    weights, config = net.static_state(architecture), net.config
    scale = architecture.number("embed_dim") ** 0.5 if config.embedding_scale is None else config.embedding_scale
    first = net.prefix_tokens
    positions, bias = weights.pop("positions") * scale, weights.pop("patch_embed.bias") * scale
    state = {"patch_embed.proj.weight": weights.pop("patch_embed.weight") * scale}
    if config.norm_embedding:
        positions = torch.cat([positions[:first], positions[first:] + bias])
    else:
        state["patch_embed.proj.bias"] = bias
    state["pos_embed"] = positions[None]
    for name, timms in (("class_token", "cls_token"), ("registers", "reg_token")):
        if name in weights:
            state[timms] = (weights.pop(name) * scale).view(1, -1, positions.shape[1])
    for name, tensor in weights.items():
        owner, _, kind = name.rpartition(".")
        at, _, part = owner.removeprefix("layers.").partition(".") if owner.startswith("layers.") else ("", "", owner)
        part = "fc_norm" if owner == "norm" and config.norm_after_pool else _NAMES.get(part, part)
        state[f"blocks.{at}.{part}.{kind}" if at else f"{part}.{kind}"] = tensor
    return {name: tensor.contiguous() for name, tensor in state.items()}


_NAMES = {"self_attn.in_proj": "attn.qkv", "self_attn.out_proj": "attn.proj", "self_attn_norm": "norm1",
          "ffn.fc1": "mlp.fc1", "ffn.fc2": "mlp.fc2", "ffn_norm": "norm2", "embedding_norm": "norm_pre"}  # fmt: skip
