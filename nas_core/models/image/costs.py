"""Parameters, FLOPs and memory of an image architecture, by formula.

``honest`` counts all parameters, and two FLOPs per multiply-accumulate of every matrix product. ``paper`` reproduces
Tables 3 to 5 of mFormer (Liu et al. 2022): linear attention costs no FLOPs, relative positions as much as the scores, a
layer norm one FLOP per element. It excludes positions, counts relative positions and the bias of queries, keys and
values at the supernet's width, and adds 4,096 indices per layer of linear attention.
"""

from __future__ import annotations

from nas_core.errors import unknown_choice
from nas_core.layers.attention.kinds import KINDS
from nas_core.models.image.workload import ImageWorkloadConfig
from nas_core.models.memory import layer_numbers
from nas_core.space import Architecture
from nas_core.space.image import image_layers, token_grid

ACCOUNTINGS = ("honest", "paper")
_STORED_INDICES = {"softmax": 0, "linear": 4096}


def parameters(
    architecture: Architecture,
    classes: int = 10,
    channels: int = 3,
    class_token: bool = True,
    image_size: int | None = None,
    accounting: str = "honest",
) -> int:
    paper = _is_paper(accounting)
    width, clip, head_dim = (architecture.number(gene) for gene in ("embed_dim", "relative_clip", "head_dim"))
    layers = image_layers(architecture)
    widest = max(layer.qkv_dim for layer in layers)
    total = channels * architecture.number("patch_size") ** 2 * width + width
    total += class_token * width + 2 * width + (width * classes + classes if classes else 0)
    if not paper:
        total += (token_grid(architecture, image_size) ** 2 + class_token) * width
    for layer in layers:
        q, ffn = layer.qkv_dim, layer.ffn_dim
        total += 4 * width * q + 3 * (widest if paper else q) + width
        total += 2 * width * ffn + ffn + width + 4 * width
        kind = KINDS.get(layer.attention)
        total += kind.parameters(widest if paper else head_dim, clip)
        total += _STORED_INDICES[_paper_kind(kind.name)] if paper else 0
    return total


def flops(
    architecture: Architecture,
    classes: int = 10,
    channels: int = 3,
    class_token: bool = True,
    image_size: int | None = None,
    accounting: str = "honest",
) -> int:
    """Count FLOPs of one image."""
    paper = _is_paper(accounting)
    width, clip = (architecture.number(gene) for gene in ("embed_dim", "relative_clip"))
    layers = image_layers(architecture)
    patches = token_grid(architecture, image_size) ** 2
    tokens = patches + class_token
    macs = patches * channels * architecture.number("patch_size") ** 2 * width + width * classes
    for layer in layers:
        macs += tokens * (4 * width * layer.qkv_dim + 2 * width * layer.ffn_dim)
        kind = KINDS.get(layer.attention)
        if not paper:
            macs += kind.macs(tokens, tokens, layer.qkv_dim, layer.heads, clip=clip)
        elif _paper_kind(kind.name) == "softmax":
            macs += (3 if clip else 2) * tokens * tokens * layer.qkv_dim
    norms = (2 * len(layers) + 1) * tokens * width
    return 2 * macs + (norms if paper else 0)


def _paper_kind(name: str) -> str:
    if name not in _STORED_INDICES:
        raise unknown_choice("kind of attention in mFormer's own accounting", name, _STORED_INDICES)
    return name


def _is_paper(accounting: str) -> bool:
    if accounting not in ACCOUNTINGS:
        raise unknown_choice("accounting", accounting, ACCOUNTINGS)
    return accounting == "paper"


def live_numbers(architecture: Architecture, config: ImageWorkloadConfig) -> int:
    """Count peak elements without weights: tokens and a layer, or the end of its attention."""
    width, clip = architecture.number("embed_dim"), architecture.number("relative_clip")
    length, batch = token_grid(architecture, None) ** 2 + 1, config.batch
    layers = image_layers(architecture)
    peaks = [
        layer_numbers(KINDS.get(layer.attention), batch, length, width, layer.qkv_dim, layer.ffn_dim, layer.heads, clip)
        for layer in layers
    ]
    ends = [batch * length * (5 * layer.qkv_dim + 2 * width) for layer in layers]
    return batch * length * width + max(*peaks, *ends)
