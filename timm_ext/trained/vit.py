"""Conversion of weights and arguments between timm's ``VisionTransformer`` and :class:`timm_ext.VisionModel`.

A subnet written by :func:`write_plain` can be loaded without this package:

    timm.create_model(arch, checkpoint_path=FILE, **model_kwargs)

``arch`` and ``model_kwargs`` are entries of the checkpoint, or metadata of a safetensors file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from timm.layers import GELU, Attention, GELUTanh, Mlp, PatchEmbed, QuickGELU, Tanh
from timm.layers import LayerNorm as TimmLayerNorm
from timm.models.vision_transformer import Block, VisionTransformer
from torch import Tensor, nn

from nas_core.errors import CheckpointError, ConfigError
from nas_core.files.writing import atomic_output
from nas_core.models.image.net import GENES, POOLS, VisionNet
from nas_core.space import Architecture, SearchSpace
from nas_core.space.image import image_layers
from timm_ext.model import PREPARED

_OTHERS = {
    "Beit": "relative position biases",
    "Eva": "rotary positions",
    "VisionTransformerDistilled": "a distillation token with a classifier of its own",
    "VisionTransformerRelPos": "relative position biases",
    "NaFlexVit": "images of several sizes in one batch",
}
"""Class of a timm model -> its feature that a supernet does not support."""
_ACTIVATIONS = {nn.ReLU: "relu", nn.SiLU: "silu", nn.Tanh: "tanh", Tanh: "tanh", GELU: "gelu", GELUTanh: "gelu_tanh",
                QuickGELU: "quick_gelu"}  # fmt: skip


def check_supported(model: Any, name: str) -> None:
    if reasons := unsupported(model):
        raise CheckpointError(
            f"{name} cannot be converted to a supernet: {'; '.join(reasons)}; give a VisionTransformer of timm with"
            " layer norms, softmax attention and the same MLP in all layers"
        )


def unsupported(model: Any) -> list[str]:
    """Return the features of a timm model that supernets do not support."""
    kind = type(model).__name__
    if type(model) is not VisionTransformer:
        return [f"it is a {kind}" + (f", with {_OTHERS[kind]}" if kind in _OTHERS else "")]
    checks = [*_network_parts(model), *(pair for block in model.blocks for pair in _block_parts(block))]
    reasons = list(dict.fromkeys(reason for present, reason in checks if present))
    return reasons or [reason for present, reason in _size_parts(model) if present]


def _network_parts(model: Any) -> list[tuple[Any, str]]:
    patches, pool = model.patch_embed, model.global_pool
    standard = type(patches) is PatchEmbed
    pools_prefix = getattr(model, "pool_include_prefix", False) and model.num_prefix_tokens
    square = standard and len(set(patches.patch_size)) == 1
    return [
        (not standard, f"patches by {type(patches).__name__}"),
        (standard and not _is_identity(patches.norm), "a norm on each patch"),
        (standard and patches.dynamic_img_pad, "images that are padded to whole patches (dynamic_img_pad)"),
        (
            standard and (not square or any(side % patches.patch_size[0] for side in patches.img_size)),
            "patches that are not square, or do not divide the image",
        ),
        (model.attn_pool is not None, "attention as pooling"),
        (pool not in POOLS and model.attn_pool is None, f"pooling {pool!r}"),
        (pools_prefix and pool not in ("", "token"), "pooling that reads the class token with the patches'"),
        (_is_identity(model.norm) == _is_identity(model.fc_norm), "not exactly one norm after the layers"),
        (not isinstance(model.head, nn.Linear | nn.Identity), f"a classifier of {type(model.head).__name__}"),
        *_norm_parts(*(norm for norm in (model.norm, model.fc_norm, model.norm_pre) if not _is_identity(norm))),
    ]


def _block_parts(block: Any) -> list[tuple[Any, str]]:
    if type(block) is not Block:
        return [(True, f"layers of {type(block).__name__}")]
    attention, mlp = block.attn, block.mlp
    plain_attention, plain_mlp, name = type(attention) is Attention, type(mlp) is Mlp, type(mlp).__name__
    kind = "gated hidden units" if "glu" in name.lower() else "feed-forward layers"
    # The oldest supported release of timm has no gate.
    gated = plain_attention and getattr(attention, "gate", None) is not None
    return [
        (not plain_attention, f"attention by {type(attention).__name__}"),
        (plain_attention and not _is_identity(attention.q_norm), "norms of queries and keys (qk_norm)"),
        (gated or (plain_attention and not _is_identity(attention.norm)), "a norm or a gate within attention"),
        (not plain_mlp, f"{kind} ({name})"),
        (plain_mlp and not _is_identity(mlp.norm), "a norm of hidden units"),
        (plain_mlp and not activation_of(mlp.act), f"activation {type(getattr(mlp, 'act', None)).__name__}"),
        *_norm_parts(block.norm1, block.norm2),
    ]


def _norm_parts(*norms: nn.Module) -> list[tuple[Any, str]]:
    return [(type(norm) not in (nn.LayerNorm, TimmLayerNorm), f"norms by {type(norm).__name__}") for norm in norms]


def _size_parts(model: Any) -> list[tuple[Any, str]]:
    forms = {(block.attn.num_heads, block.attn.head_dim, activation_of(block.mlp.act)) for block in model.blocks}
    return [
        (len(forms) > 1, "layers of different heads or activations"),
        (len({norm.eps for norm in norms_of(model)}) > 1, "norms of different eps"),
    ]


def _is_identity(module: nn.Module) -> bool:
    return isinstance(module, nn.Identity)


def norms_of(model: Any) -> list[Any]:
    norms = [model.norm_pre, model.norm, model.fc_norm, *(norm for b in model.blocks for norm in (b.norm1, b.norm2))]
    return [norm for norm in norms if not _is_identity(norm)]


def activation_of(module: nn.Module) -> str:
    """Return the name of an activation, such as ``gelu``; empty if it is not supported."""
    if isinstance(module, nn.GELU):
        return "gelu_tanh" if module.approximate == "tanh" else "gelu"
    return _ACTIVATIONS.get(type(module), "")


def architecture_of(model: Any) -> Architecture:
    """Return the architecture of a timm model; its gene ``image_size`` is the image height in pixels."""
    blocks, patch = model.blocks, model.patch_embed
    return Architecture(
        {
            "layers": len(blocks),
            "embed_dim": model.embed_dim,
            "ffn_dim": tuple(block.mlp.fc1.out_features for block in blocks),
            "heads": tuple(block.attn.num_heads for block in blocks),
            "attention": "softmax",
            "head_dim": blocks[0].attn.head_dim,
            "image_size": patch.img_size[0],
            "patch_size": patch.patch_size[0],
            "relative_clip": 0,
        }
    )


def arguments_of(model: Any) -> dict[str, Any]:
    """Return arguments of :class:`timm_ext.VisionModel` for an equivalent of a timm model."""
    return {
        "num_classes": model.num_classes,
        "in_chans": model.in_chans,
        "img_size": tuple(model.patch_embed.img_size),
        "global_pool": model.global_pool,
        "class_token": model.cls_token is not None,
        "registers": model.num_reg_tokens,
        "activation": activation_of(model.blocks[0].mlp.act),
        "norm_eps": norms_of(model)[0].eps,
        "embedding_scale": 1.0,
        "smooth_positions": True,
        "norm_embedding": not isinstance(model.norm_pre, nn.Identity),
        "norm_after_pool": not isinstance(model.fc_norm, nn.Identity),
    }


def state_of(model: Any, space: SearchSpace) -> dict[str, Tensor]:
    """Return the weights of a timm model as a float32 state dict of a ``VisionNet`` over ``space``.

    All kinds of attention in ``space`` get the weights of softmax attention.
    """
    width = model.embed_dim
    state = {"positions": _positions(model)}
    if model.cls_token is not None:
        state["class_token"] = model.cls_token.view(width)
    if model.reg_token is not None:
        state["registers"] = model.reg_token.view(-1, width)
    affine = {"patch_embed": model.patch_embed.proj, "embedding_norm": model.norm_pre, "head": model.head}
    affine["norm"] = model.norm if isinstance(model.fc_norm, nn.Identity) else model.fc_norm
    pairs = {name: (module.weight, module.bias) for name, module in affine.items() if type(module) is not nn.Identity}
    for index, (block, kinds) in enumerate(zip(model.blocks, GENES.attention_options(space), strict=True)):
        layer = {
            "self_attn_norm": (block.norm1.weight, block.norm1.bias),
            "ffn_norm": (block.norm2.weight, block.norm2.bias),
            "ffn.fc1": (block.mlp.fc1.weight, block.mlp.fc1.bias),
            "ffn.fc2": _scale_linear(block.mlp.fc2, block.ls2),
        }
        for kind in kinds:
            prefix = "self_attn" if len(kinds) == 1 else f"self_attn.{kind}"
            layer[f"{prefix}.in_proj"] = (block.attn.qkv.weight, block.attn.qkv.bias)
            layer[f"{prefix}.out_proj"] = _scale_linear(block.attn.proj, block.ls1)
        pairs |= {f"layers.{index}.{name}": pair for name, pair in layer.items()}
    for name, (weight, bias) in pairs.items():
        state |= {f"{name}.weight": weight, f"{name}.bias": torch.zeros(len(weight)) if bias is None else bias}
    return {name: tensor.detach().float().cpu().clone() for name, tensor in state.items()}


def _scale_linear(linear: Any, scale: Any) -> tuple[Tensor, Tensor | None]:
    if isinstance(scale, nn.Identity):
        return linear.weight, linear.bias
    gamma = scale.gamma.detach().float()
    bias = None if linear.bias is None else linear.bias.detach().float() * gamma
    return linear.weight.detach().float() * gamma[:, None], bias


def _positions(model: Any) -> Tensor:
    """Return positions (tokens, channels); zeros for tokens without positions."""
    prefix, width = model.num_prefix_tokens, model.embed_dim
    if model.pos_embed is None:
        return torch.zeros(prefix + model.patch_embed.num_patches, width)
    positions: Tensor = model.pos_embed.detach().float().cpu().view(-1, width)
    return torch.cat([torch.zeros(prefix, width), positions]) if model.no_embed_class else positions


# -- subnets as models of timm ---------------------------------------------------------------------------------------

_NAMES = {"self_attn.in_proj": "attn.qkv", "self_attn.out_proj": "attn.proj", "self_attn_norm": "norm1",
          "ffn.fc1": "mlp.fc1", "ffn.fc2": "mlp.fc2", "ffn_norm": "norm2", "embedding_norm": "norm_pre"}  # fmt: skip
_BY_EPS = {1e-6: "vit_base_patch16_224", 1e-5: "vit_base_patch16_clip_224"}
"""Epsilon of layer norms -> name of a timm model that uses it; ``timm.create_model`` has no argument for it."""


def write_plain(net: VisionNet, architecture: Architecture, prepared: Mapping[str, Any], path: Path) -> int:
    """Write a subnet as a checkpoint of timm's ``VisionTransformer``; return its number of parameters.

    Args:
        prepared: image preprocessing, stored as ``pretrained_cfg``.
        path: new file, ``.pth`` or ``.safetensors``.
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
    """Return the name and the arguments of ``timm.create_model`` for a subnet."""
    if differences := list(_differences(net, architecture)):
        raise ConfigError(
            f"timm's VisionTransformer cannot represent the subnet: {'; '.join(differences)}; leave --plain out"
        )
    config, layer = net.config, image_layers(architecture)[0]
    width, ratio = architecture.number("embed_dim"), layer.ffn_dim / architecture.number("embed_dim")
    if int(width * ratio) != layer.ffn_dim:  # timm rounds down
        ratio = (layer.ffn_dim + 0.5) / width
    height, columns = (side * net.patch_size for side in net.grid)
    return _BY_EPS[config.norm_eps], {
        "img_size": height if height == columns else [height, columns],
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
            yield f"its layers have {', '.join(map(str, sorted(sizes)))} {name}, not the same number in each layer"
    if qkv_dim := next((layer.qkv_dim for layer in layers if layer.qkv_dim != width), 0):
        yield f"its heads are {qkv_dim} wide in total, not {width} like the tokens"
    if others := sorted({layer.attention for layer in layers} - {"softmax"}):
        yield f"it has {', '.join(others)} attention"
    if architecture.number("relative_clip"):
        yield "it has relative positions"
    if net.config.norm_eps not in _BY_EPS:
        yield f"its norms have epsilon {net.config.norm_eps:g}, not 1e-06 or 1e-05"


def plain_state(net: VisionNet, architecture: Architecture) -> dict[str, Tensor]:
    """Return the weights of a subnet with timm's names."""
    # timm has no scale of the embedding: it is multiplied into the weights.
    weights, config = net.static_state(architecture), net.config
    scale = architecture.number("embed_dim") ** 0.5 if config.embedding_scale is None else config.embedding_scale
    prefix_tokens = net.prefix_tokens
    positions, bias = weights.pop("positions") * scale, weights.pop("patch_embed.bias") * scale
    state = {"patch_embed.proj.weight": weights.pop("patch_embed.weight") * scale}
    if config.norm_embedding:
        positions = torch.cat([positions[:prefix_tokens], positions[prefix_tokens:] + bias])
    else:
        state["patch_embed.proj.bias"] = bias
    state["pos_embed"] = positions[None]
    for name, timm_name in (("class_token", "cls_token"), ("registers", "reg_token")):
        if name in weights:
            state[timm_name] = (weights.pop(name) * scale).view(1, -1, positions.shape[1])
    for name, tensor in weights.items():
        owner, _, kind = name.rpartition(".")
        in_layer = owner.startswith("layers.")
        layer, _, module = owner.removeprefix("layers.").partition(".") if in_layer else ("", "", owner)
        module = "fc_norm" if owner == "norm" and config.norm_after_pool else _NAMES.get(module, module)
        state[f"blocks.{layer}.{module}.{kind}" if in_layer else f"{module}.{kind}"] = tensor
    return {name: tensor.contiguous() for name, tensor in state.items()}
