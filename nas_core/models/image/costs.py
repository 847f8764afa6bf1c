"""Parameters and FLOPs of an image architecture, by formula, in two accountings.

``honest`` counts what this project's static network has and multiplies: all parameters; two FLOPs per
multiply-accumulate of every matrix product, for one image, linear attention included.

``paper`` reproduces Tables 3 to 5 of mFormer (Liu et al. 2022, "Neural Architecture Search on Efficient Transformers
and Beyond"), whose profiler passed over what it did not know: the core of linear attention costs nothing, relative
positions cost as much as the scores, a layer norm one FLOP per element. Its parameters leave out the positions and
keep what the authors' subnets do not slice: the bias of queries, keys and values and the table of relative positions
at the supernet's width, and 4,096 stored indices for each layer of linear attention.
"""

from __future__ import annotations

from nas_core.errors import unknown_choice
from nas_core.space import Architecture
from nas_core.space.image import image_layers, token_grid

__all__ = ["ACCOUNTINGS", "flops", "flops_g", "parameters", "params_m"]

ACCOUNTINGS = ("honest", "paper")
_STORED_INDICES = 4096


def parameters(
    architecture: Architecture,
    classes: int = 10,
    channels: int = 3,
    class_token: bool = True,
    image_size: int | None = None,
    accounting: str = "honest",
) -> int:
    """Parameters of the static network, counted without building it.

    Raises:
        ArchitectureError: a gene of image networks is missing.
        UnknownChoiceError: no such accounting.
    """
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
        if layer.attention == "linear":
            total += _STORED_INDICES if paper else 0
        elif clip:
            total += (2 * clip + 1) * (widest if paper else head_dim)
    return total


def params_m(architecture: Architecture, accounting: str = "honest") -> float:
    """Millions of parameters, with a classifier of ten classes."""
    return parameters(architecture, accounting=accounting) / 1e6


def flops(
    architecture: Architecture,
    classes: int = 10,
    channels: int = 3,
    class_token: bool = True,
    image_size: int | None = None,
    accounting: str = "honest",
) -> int:
    """FLOPs of one image.

    Raises:
        ArchitectureError: a gene of image networks is missing.
        UnknownChoiceError: no such accounting.
    """
    paper = _is_paper(accounting)
    width, clip, head_dim = (architecture.number(gene) for gene in ("embed_dim", "relative_clip", "head_dim"))
    layers = image_layers(architecture)
    patches = token_grid(architecture, image_size) ** 2
    tokens = patches + class_token
    macs = patches * channels * architecture.number("patch_size") ** 2 * width + width * classes
    for layer in layers:
        macs += tokens * (4 * width * layer.qkv_dim + 2 * width * layer.ffn_dim)
        if layer.attention == "linear":
            macs += 0 if paper else 2 * tokens * 2 * head_dim * layer.qkv_dim
            continue
        macs += 2 * tokens * tokens * layer.qkv_dim
        if clip:
            macs += tokens * layer.qkv_dim * (tokens if paper else 2 * clip + 1)
    norms = (2 * len(layers) + 1) * tokens * width
    return 2 * macs + (norms if paper else 0)


def flops_g(architecture: Architecture, accounting: str = "honest") -> float:
    """Billions of FLOPs, with a classifier of ten classes."""
    return flops(architecture, accounting=accounting) / 1e9


def _is_paper(accounting: str) -> bool:
    if accounting not in ACCOUNTINGS:
        raise unknown_choice("accounting", accounting, ACCOUNTINGS)
    return accounting == "paper"
