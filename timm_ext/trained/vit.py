"""The elastic form of timm's ``VisionTransformer``: supported models, architecture, arguments and weights.

Shapes: C channels, N tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from timm.layers import GELU, Attention, GELUTanh, Mlp, PatchEmbed, QuickGELU, Tanh
from timm.layers import LayerNorm as TimmLayerNorm
from timm.models.vision_transformer import Block, VisionTransformer
from torch import Tensor, nn

from nas_core.errors import CheckpointError
from nas_core.models.image.net import POOLS, attention_options
from nas_core.space import Architecture, SearchSpace

_OTHERS = {
    "Beit": "relative position biases",
    "Eva": "rotary positions",
    "VisionTransformerDistilled": "a distillation token with a classifier of its own",
    "VisionTransformerRelPos": "relative position biases",
    "NaFlexVit": "images of several sizes in one batch",
}
"""Related models of timm -> their part without an elastic form."""
_ACTIVATIONS = {nn.ReLU: "relu", nn.SiLU: "silu", nn.Tanh: "tanh", Tanh: "tanh", GELU: "gelu", GELUTanh: "gelu_tanh",
                QuickGELU: "quick_gelu"}  # fmt: skip


def check_supported(model: Any, name: str) -> None:
    if reasons := unsupported(model):
        raise CheckpointError(
            f"{name} has no elastic form: {'; '.join(reasons)}. A VisionTransformer of timm with layer norms, softmax"
            " attention and an MLP of one activation has one"
        )


def unsupported(model: Any) -> list[str]:
    """List parts of a timm model without an elastic form, also on torch's meta device."""
    kind = type(model).__name__
    if type(model) is not VisionTransformer:
        return [f"it is a {kind}" + (f", with {_OTHERS[kind]}" if kind in _OTHERS else "")]
    reasons = [*_of_network(model), *(reason for block in model.blocks for reason in _of_block(block))]
    return list(dict.fromkeys(reasons or _of_sizes(model)))


def _of_network(model: Any) -> Iterator[str]:
    patches = model.patch_embed
    if type(patches) is not PatchEmbed:
        yield f"patches by {type(patches).__name__}"
    elif not isinstance(patches.norm, nn.Identity):
        yield "a norm of each patch"
    elif patches.dynamic_img_pad:
        yield "images that are padded to whole patches (dynamic_img_pad)"
    elif len(set(patches.patch_size)) > 1 or any(side % patches.patch_size[0] for side in patches.img_size):
        yield "patches that are not square, or do not divide the image"
    prefix = getattr(model, "pool_include_prefix", False) and model.num_prefix_tokens
    if model.attn_pool is not None:
        yield "attention as pooling"
    elif model.global_pool not in POOLS:
        yield f"pooling {model.global_pool!r}"
    elif prefix and model.global_pool not in ("", "token"):
        yield "pooling that reads the class token with the patches'"
    if isinstance(model.norm, nn.Identity) == isinstance(model.fc_norm, nn.Identity):
        yield "not exactly one norm after the layers"
    if not isinstance(model.head, nn.Linear | nn.Identity):
        yield f"a classifier of {type(model.head).__name__}"
    norms = (model.norm, model.fc_norm, model.norm_pre)
    yield from _of_norms(*(norm for norm in norms if not isinstance(norm, nn.Identity)))


def _of_block(block: Any) -> Iterator[str]:
    if type(block) is not Block:
        yield f"layers of {type(block).__name__}"
        return
    if type(block.attn) is not Attention:
        yield f"attention by {type(block.attn).__name__}"
    else:
        if not isinstance(block.attn.q_norm, nn.Identity):
            yield "norms of queries and keys (qk_norm)"
        # The oldest supported release of timm has no gate.
        if not isinstance(block.attn.norm, nn.Identity) or getattr(block.attn, "gate", None) is not None:
            yield "a norm or a gate within attention"
    if type(block.mlp) is not Mlp:
        name = type(block.mlp).__name__
        yield f"{'gated hidden units' if 'glu' in name.lower() else 'feed-forward layers'} ({name})"
    else:
        if not isinstance(block.mlp.norm, nn.Identity):
            yield "a norm of hidden units"
        if not activation_of(block.mlp.act):
            yield f"activation {type(block.mlp.act).__name__}"
    yield from _of_norms(block.norm1, block.norm2)


def _of_norms(*norms: nn.Module) -> Iterator[str]:
    for norm in norms:
        if type(norm) not in (nn.LayerNorm, TimmLayerNorm):
            yield f"norms by {type(norm).__name__}"


def _of_sizes(model: Any) -> Iterator[str]:
    blocks = model.blocks
    if len({(block.attn.num_heads, block.attn.head_dim, activation_of(block.mlp.act)) for block in blocks}) > 1:
        yield "layers of different heads or activations"
    if len({norm.eps for norm in norms_of(model)}) > 1:
        yield "norms of different eps"


def norms_of(model: Any) -> list[Any]:
    every = [model.norm_pre, model.norm, model.fc_norm, *(norm for b in model.blocks for norm in (b.norm1, b.norm2))]
    return [norm for norm in every if not isinstance(norm, nn.Identity)]


def activation_of(module: nn.Module) -> str:
    """Return the name in :data:`nas_core.layers.feed_forward.ACTIVATIONS`, or an empty string."""
    if isinstance(module, nn.GELU):
        return "gelu_tanh" if module.approximate == "tanh" else "gelu"
    return _ACTIVATIONS.get(type(module), "")


def architecture_of(model: Any) -> Architecture:
    """Return the architecture of a supported model; its ``image_size`` is the height."""
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
    """Return the arguments of an equivalent :class:`timm_ext.VisionModel`."""
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
    """Return the float32 state of a ``VisionNet`` whose largest architecture is the model's.

    Layer scale is multiplied into the preceding weights; missing biases and positions are zero. Other kinds of
    attention are initialised with softmax's projections.
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
    for index, (block, kinds) in enumerate(zip(model.blocks, attention_options(space), strict=True)):
        layer = {
            "self_attn_norm": (block.norm1.weight, block.norm1.bias),
            "ffn_norm": (block.norm2.weight, block.norm2.bias),
            "ffn.fc1": (block.mlp.fc1.weight, block.mlp.fc1.bias),
            "ffn.fc2": _scaled(block.mlp.fc2, block.ls2),
        }
        for kind in kinds:
            prefix = "self_attn" if len(kinds) == 1 else f"self_attn.{kind}"
            layer[f"{prefix}.in_proj"] = (block.attn.qkv.weight, block.attn.qkv.bias)
            layer[f"{prefix}.out_proj"] = _scaled(block.attn.proj, block.ls1)
        pairs |= {f"layers.{index}.{name}": pair for name, pair in layer.items()}
    for name, (weight, bias) in pairs.items():
        state |= {f"{name}.weight": weight, f"{name}.bias": torch.zeros(len(weight)) if bias is None else bias}
    return {name: tensor.detach().float().cpu().clone() for name, tensor in state.items()}


def _scaled(linear: Any, scale: Any) -> tuple[Tensor, Tensor | None]:
    if isinstance(scale, nn.Identity):
        return linear.weight, linear.bias
    gamma = scale.gamma.detach().float()
    bias = None if linear.bias is None else linear.bias.detach().float() * gamma
    return linear.weight.detach().float() * gamma[:, None], bias


def _positions(model: Any) -> Tensor:
    """Return (N, C); zeros for tokens without positions."""
    first, width = model.num_prefix_tokens, model.embed_dim
    if model.pos_embed is None:
        return torch.zeros(first + model.patch_embed.num_patches, width)
    table: Tensor = model.pos_embed.detach().float().cpu().view(-1, width)
    return torch.cat([torch.zeros(first, width), table]) if model.no_embed_class else table
