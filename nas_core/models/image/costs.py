"""Formulas for parameters, FLOPs and memory of image architectures.

All parameters count. A multiply-accumulate of a matrix product is two FLOPs.
"""

from __future__ import annotations

from nas_core.layers.attention.kinds import ATTENTION_KINDS
from nas_core.models.image.workload import ImageWorkloadConfig
from nas_core.models.memory import layer_numbers
from nas_core.space import Architecture
from nas_core.space.image import image_layers, token_grid


def parameters(architecture: Architecture, classes: int = 10, channels: int = 3, class_token: bool = True) -> int:
    width, clip, head_dim = (architecture.number(gene) for gene in ("embed_dim", "relative_clip", "head_dim"))
    total = channels * architecture.number("patch_size") ** 2 * width + width
    total += class_token * width + 2 * width + (width * classes + classes if classes else 0)
    total += (token_grid(architecture) ** 2 + class_token) * width
    for layer in image_layers(architecture):
        total += 4 * width * layer.qkv_dim + 3 * layer.qkv_dim + width
        total += 2 * width * layer.ffn_dim + layer.ffn_dim + width + 4 * width
        total += ATTENTION_KINDS.get(layer.attention).parameters(head_dim, clip)
    return total


def flops(architecture: Architecture, classes: int = 10, channels: int = 3) -> int:
    width, clip = (architecture.number(gene) for gene in ("embed_dim", "relative_clip"))
    patches = token_grid(architecture) ** 2
    tokens = patches + 1
    macs = patches * channels * architecture.number("patch_size") ** 2 * width + width * classes
    for layer in image_layers(architecture):
        macs += tokens * (4 * width * layer.qkv_dim + 2 * width * layer.ffn_dim)
        macs += ATTENTION_KINDS.get(layer.attention).macs(tokens, tokens, layer.qkv_dim, layer.heads, clip=clip)
    return 2 * macs


def activation_numel(architecture: Architecture, config: ImageWorkloadConfig) -> int:
    width, clip = architecture.number("embed_dim"), architecture.number("relative_clip")
    length, batch = token_grid(architecture) ** 2 + 1, config.batch
    layers = image_layers(architecture)
    peaks = [
        layer_numbers(
            ATTENTION_KINDS.get(layer.attention), batch, length, width, layer.qkv_dim, layer.ffn_dim, layer.heads, clip
        )
        for layer in layers
    ]
    ends = [batch * length * (5 * layer.qkv_dim + 2 * width) for layer in layers]
    return batch * length * width + max(*peaks, *ends)
