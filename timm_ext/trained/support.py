"""Which of timm's models have an elastic form that computes the same, and what of the others has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from timm.layers import GELU, Attention, GELUTanh, Mlp, PatchEmbed, QuickGELU, Tanh
from timm.layers import LayerNorm as TimmLayerNorm
from timm.models.vision_transformer import Block, VisionTransformer
from torch import nn

from nas_core.errors import CheckpointError
from nas_core.models.image.net import POOLS

_OTHERS = {
    "Beit": "relative position biases",
    "Eva": "rotary positions",
    "VisionTransformerDistilled": "a distillation token with a classifier of its own",
    "VisionTransformerRelPos": "relative position biases",
    "NaFlexVit": "images of several sizes in one batch",
}
"""Relatives of ``VisionTransformer``, and what of them an elastic network does not compute."""


_ACTIVATIONS = {nn.ReLU: "relu", nn.SiLU: "silu", nn.Tanh: "tanh", Tanh: "tanh", GELU: "gelu", GELUTanh: "gelu_tanh",
                QuickGELU: "quick_gelu"}  # fmt: skip


def check_supported(model: Any, name: str) -> None:
    """Raise unless an elastic network can compute what the model does.

    Raises:
        CheckpointError: it cannot; the message says what is missing.
    """
    if lacking := unsupported(model):
        raise CheckpointError(
            f"{name} has no elastic form: {'; '.join(lacking)}. A VisionTransformer of timm with layer norms, softmax"
            " attention and an MLP of one activation has one"
        )


def unsupported(model: Any) -> list[str]:
    """What of a timm model has no elastic form, in words; nothing if it can be taken over. Weights are not looked at,
    so the model may be on torch's meta device."""
    kind = type(model).__name__
    if type(model) is not VisionTransformer:
        return [f"it is a {kind}" + (f", with {_OTHERS[kind]}" if kind in _OTHERS else "")]
    found = dict.fromkeys([*_of_network(model), *(what for block in model.blocks for what in _of_block(block))])
    if not found:
        found = dict.fromkeys(_of_sizes(model))
    return list(found)


def _of_network(model: Any) -> Iterator[str]:
    if type(model.patch_embed) is not PatchEmbed:
        yield f"patches by {type(model.patch_embed).__name__}"
    elif not isinstance(model.patch_embed.norm, nn.Identity):
        yield "a norm of each patch"
    elif model.patch_embed.dynamic_img_pad:
        yield "images that are padded to whole patches (dynamic_img_pad)"
    elif len(set(model.patch_embed.patch_size)) > 1 or any(
        side % model.patch_embed.patch_size[0] for side in model.patch_embed.img_size
    ):
        yield "patches that are not square, or do not divide the image"
    if model.attn_pool is not None:
        yield "attention as pooling"
    elif model.global_pool not in POOLS:
        yield f"pooling {model.global_pool!r}"
    elif (
        getattr(model, "pool_include_prefix", False)
        and model.global_pool not in ("", "token")
        and model.num_prefix_tokens
    ):
        yield "pooling that reads the class token with the patches'"
    if isinstance(model.norm, nn.Identity) == isinstance(model.fc_norm, nn.Identity):
        yield "not exactly one norm after the layers"
    if not isinstance(model.head, nn.Linear | nn.Identity):
        yield f"a classifier of {type(model.head).__name__}"
    for norm in (model.norm, model.fc_norm, model.norm_pre):
        if not isinstance(norm, nn.Identity):
            yield from _of_norm(norm)


def _of_block(block: Any) -> Iterator[str]:
    if type(block) is not Block:
        yield f"layers of {type(block).__name__}"
        return
    if type(block.attn) is not Attention:
        yield f"attention by {type(block.attn).__name__}"
    else:
        if not isinstance(block.attn.q_norm, nn.Identity):
            yield "norms of queries and keys (qk_norm)"
        # What is younger than the oldest release of timm that is supported is asked for.
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
    for norm in (block.norm1, block.norm2):
        yield from _of_norm(norm)


def _of_norm(norm: nn.Module) -> Iterator[str]:
    if type(norm) not in (nn.LayerNorm, TimmLayerNorm):
        yield f"norms by {type(norm).__name__}"


def _of_sizes(model: Any) -> Iterator[str]:
    """Settings that an elastic network has once."""
    blocks = model.blocks
    if len({(block.attn.num_heads, block.attn.head_dim, activation_of(block.mlp.act)) for block in blocks}) > 1:
        yield "layers of different heads or activations"
    if len({norm.eps for norm in norms_of(model)}) > 1:
        yield "norms of different eps"


def norms_of(model: Any) -> list[Any]:
    """Every layer norm of a model that can be taken over."""
    every = [model.norm_pre, model.norm, model.fc_norm, *(norm for b in model.blocks for norm in (b.norm1, b.norm2))]
    return [norm for norm in every if not isinstance(norm, nn.Identity)]


def activation_of(module: nn.Module) -> str:
    """The name that a module's function has in :data:`nas_core.layers.feed_forward.ACTIVATIONS`; empty: none."""
    if isinstance(module, nn.GELU):
        return "gelu_tanh" if module.approximate == "tanh" else "gelu"
    return _ACTIVATIONS.get(type(module), "")
