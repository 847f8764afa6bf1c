"""The weights of timm's ``VisionTransformer`` in an elastic image network.

Shapes: C channels, H heads, D head dim.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from nas_core.models.image.net import attention_options
from nas_core.space import Architecture, SearchSpace
from timm_ext.trained.support import activation_of, norms_of


def architecture_of(model: Any) -> Architecture:
    """The architecture of a model that can be taken over; of images that are not square, that of their height."""
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
    """The arguments of :class:`timm_ext.VisionModel` with which it computes as the model does."""
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
    """The state of the ``VisionNet`` of a space whose largest architecture is the model's, in float32.

    What timm multiplies or leaves out is written out: the factors of layer scale are in the weights before them, absent
    biases and positions are zero. Kinds of attention beside softmax begin with its projections.
    """
    width = model.embed_dim
    state = {"positions": _positions(model)}
    if model.cls_token is not None:
        state["class_token"] = model.cls_token.view(width)
    if model.reg_token is not None:
        state["registers"] = model.reg_token.view(-1, width)
    affine = {"patch_embed": model.patch_embed.proj, "embedding_norm": model.norm_pre, "head": model.head}
    affine["norm"] = model.norm if isinstance(model.fc_norm, nn.Identity) else model.fc_norm
    pairs = {name: (one.weight, one.bias) for name, one in affine.items() if not isinstance(one, nn.Identity)}
    for index, (block, kinds) in enumerate(zip(model.blocks, attention_options(space), strict=True)):
        own = {
            "self_attn_norm": (block.norm1.weight, block.norm1.bias),
            "ffn_norm": (block.norm2.weight, block.norm2.bias),
            "ffn.fc1": (block.mlp.fc1.weight, block.mlp.fc1.bias),
            "ffn.fc2": _scaled(block.mlp.fc2, block.ls2),
        }
        for kind in kinds:
            at = "self_attn" if len(kinds) == 1 else f"self_attn.{kind}"
            own[f"{at}.in_proj"] = (block.attn.qkv.weight, block.attn.qkv.bias)
            own[f"{at}.out_proj"] = _scaled(block.attn.proj, block.ls1)
        pairs |= {f"layers.{index}.{name}": pair for name, pair in own.items()}
    for name, (weight, bias) in pairs.items():
        state |= {f"{name}.weight": weight, f"{name}.bias": torch.zeros(len(weight)) if bias is None else bias}
    return {name: _own(tensor) for name, tensor in state.items()}


def _own(tensor: Tensor) -> Tensor:
    return tensor.detach().float().cpu().clone()


def _scaled(linear: Any, scale: Any) -> tuple[Tensor, Tensor | None]:
    """Weight and bias of a linear layer whose output is multiplied by a layer scale, if there is one."""
    if isinstance(scale, nn.Identity):
        return linear.weight, linear.bias
    gamma = scale.gamma.detach().float()
    bias = None if linear.bias is None else linear.bias.detach().float() * gamma
    return linear.weight.detach().float() * gamma[:, None], bias


def _positions(model: Any) -> Tensor:
    """(N, C): those of tokens that have none are zero."""
    first, width = model.num_prefix_tokens, model.embed_dim
    if model.pos_embed is None:
        return torch.zeros(first + model.patch_embed.num_patches, width)
    table: Tensor = model.pos_embed.detach().float().cpu().view(-1, width)
    return torch.cat([torch.zeros(first, width), table]) if model.no_embed_class else table
