"""Very small vision transformers of timm, in the forms that can be converted."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import timm
import torch

SIZES = {
    "img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 3, "num_heads": 4, "mlp_ratio": 2.0, "num_classes": 2
}  # fmt: skip
FORMS: dict[str, dict[str, Any]] = {
    "vit": {},
    "mean of patches": {"global_pool": "avg"},
    "mean, norm before": {"global_pool": "avg", "fc_norm": False},
    "class token, norm after": {"fc_norm": True},
    "no class token": {"class_token": False, "global_pool": "avgmax"},
    "deit3": {"init_values": 0.1, "no_embed_class": True},
    "dinov2 with registers": {"init_values": 0.1, "no_embed_class": True, "reg_tokens": 2},
    "clip": {"pre_norm": True, "act_layer": "quick_gelu"},
    "no biases": {"qkv_bias": False, "proj_bias": False},
    "no positions": {"pos_embed": "none"},
    "every token": {"global_pool": "", "num_classes": 0},
    "not square": {"img_size": (32, 16)},
    "other sizes": {"dynamic_img_size": True},
    "tanh": {"act_layer": "gelu_tanh", "norm_layer": "layernorm", "in_chans": 1},
}


def vit(**changes: Any) -> Any:
    """A model whose biases, norms and tokens are not the constants that they begin with."""
    torch.manual_seed(3)
    model = timm.create_model("vit_tiny_patch16_224", **{**SIZES, **changes}).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def images(model: Any, count: int = 2) -> torch.Tensor:
    size = (count, model.in_chans, *model.patch_embed.img_size)
    return torch.randn(*size, generator=torch.Generator().manual_seed(1))


def save(model: Any, path: Path, **changes: Any) -> Path:
    """As timm's trainer writes it."""
    args = argparse.Namespace(
        model="vit_tiny_patch16_224", num_classes=2, img_size=None, model_kwargs={**SIZES, **changes}
    )
    torch.save({"arch": args.model, "state_dict": model.state_dict(), "args": args, "epoch": 1, "version": 2}, path)
    return path
