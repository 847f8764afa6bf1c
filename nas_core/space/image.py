"""Search spaces and published architectures of image transformers, from mFormer and AutoFormer.

Genes of the network: ``layers``, ``embed_dim``, ``image_size``, ``patch_size``, ``head_dim``, ``relative_clip``. Genes
of each layer: ``heads``, ``attention``, and ``ffn_dim`` or ``mlp_ratio`` (FFN width divided by ``embed_dim``). Queries,
keys and values have width ``heads * head_dim``.
"""

from __future__ import annotations

from collections.abc import Sequence

from nas_core.errors import ArchitectureError, check_choice
from nas_core.space.architecture import Architecture
from nas_core.space.choice import Choice
from nas_core.space.registry import register_space
from nas_core.space.space import SearchSpace
from nas_core.space.stack import TransformerLayer, attention_choice, per_layer, size_choices, transformer_layers


def image_layers(architecture: Architecture) -> tuple[TransformerLayer, ...]:
    if "ffn_dim" in architecture:
        return transformer_layers(architecture)
    depth, width = architecture.number("layers"), architecture.number("embed_dim")
    ratios = per_layer(architecture, "mlp_ratio", depth)
    return transformer_layers(architecture, [round(float(ratio) * width) for ratio in ratios])


def token_grid(architecture: Architecture) -> int:
    """Return the number of patches along one side of the image."""
    size, patch = architecture.number("image_size"), architecture.number("patch_size")
    if size < 1 or patch < 1 or size % patch:
        raise ArchitectureError(f"image size {size} is not divisible by patch size {patch}; change one of them")
    return size // patch


def image_space(
    name: str,
    *,
    layers: Sequence[int],
    embed_dims: Sequence[int],
    heads: Sequence[int],
    head_dim: int,
    image_size: int,
    patch_size: int,
    ffn_dims: Sequence[int] = (),
    mlp_ratios: Sequence[float] = (),
    attention: Sequence[str] = ("softmax",),
    relative_clip: int = 14,
) -> SearchSpace:
    """Create a search space of image transformers with FFN widths ``ffn_dims`` or ``mlp_ratios``.

    Args:
        attention: names in ``nas_core.layers.attention.ATTENTION_KINDS``. Several names give a choice per layer.
        relative_clip: largest relative distance of softmax attention in tokens. 0 disables relative positions.
    """
    fixed = {"head_dim": head_dim, "image_size": image_size, "patch_size": patch_size, "relative_clip": relative_clip}
    ffn = {"ffn_dim": ffn_dims} if ffn_dims else {"mlp_ratio": mlp_ratios}
    choices = size_choices(layers, embed_dims, heads, **ffn)
    if len(attention) > 1:
        return SearchSpace(name, [*choices, attention_choice(attention, max(layers))], fixed)
    return SearchSpace(name, choices, {**fixed, "attention": attention[0]})


def static_image_space(architecture: Architecture) -> SearchSpace:
    fixed, choices = {}, []
    for name, gene in architecture.items():
        if isinstance(gene, tuple):
            choices.append(Choice(name, tuple((option,) for option in gene), "layers"))
        elif name in ("layers", "embed_dim"):
            choices.append(Choice(name, ((gene,),)))
        else:
            fixed[name] = gene
    return SearchSpace(f"static-{architecture.key}", choices, fixed)


@register_space
def mformer_cifar10() -> SearchSpace:
    """Return mFormer's search space for CIFAR-10 (Liu et al. 2022, Table 2): 1.5e21 architectures."""
    return image_space(
        "mformer_cifar10",
        layers=(12, 13, 14),
        embed_dims=(320, 384, 448),
        ffn_dims=(672, 896, 1344, 1568, 1792),
        heads=(5, 6, 7),
        head_dim=64,
        image_size=224,
        patch_size=16,
        attention=("softmax", "linear"),
    )


@register_space
def autoformer_s() -> SearchSpace:
    """Return the search space AutoFormer-S (Chen et al. 2021, Table 1).

    Relative positions differ: they follow raster order and are added to keys only, as in mFormer.
    """
    return image_space(
        "autoformer_s",
        layers=(12, 13, 14),
        embed_dims=(320, 384, 448),
        mlp_ratios=(3.0, 3.5, 4.0),
        heads=(5, 6, 7),
        head_dim=64,
        image_size=224,
        patch_size=16,
    )


def _small(name: str, attention: Sequence[str]) -> SearchSpace:
    return image_space(
        name,
        layers=(4, 5, 6),
        embed_dims=(96, 128),
        ffn_dims=(192, 256, 384),
        heads=(2, 3),
        head_dim=32,
        image_size=32,
        patch_size=4,
        attention=attention,
    )


@register_space
def mformer_cifar10_small() -> SearchSpace:
    """Return a small mFormer space for images of 32 x 32 pixels (64 patches)."""
    return _small("mformer_cifar10_small", ("softmax", "linear"))


@register_space
def vit_cifar10_small() -> SearchSpace:
    """Return the search space ``mformer_cifar10_small`` with softmax attention only."""
    return _small("vit_cifar10_small", ("softmax",))


def _architecture(
    embed_dim: int, ffn_dim: Sequence[int], heads: Sequence[int], attention: Sequence[str], relative_clip: int = 14
) -> Architecture:
    return Architecture(
        {
            "layers": len(ffn_dim),
            "embed_dim": embed_dim,
            "ffn_dim": tuple(ffn_dim),
            "heads": tuple(heads),
            "attention": tuple(attention),
            "head_dim": 64,
            "image_size": 224,
            "patch_size": 16,
            "relative_clip": relative_clip,
        }
    )


_COSFORMER_FFN = (1792, 1792, 1344, 1568, 1344, 1344, 1344, 1344, 1568, 672, 1568, 1344)
_COSFORMER_HEADS = (7, 7, 6, 7, 5, 7, 5, 7, 5, 6, 7, 6)
# Sums, kinds of attention and trends are the paper's; the single values are chosen to have those sums. The 19 heads of
# the linear layers follow from Table 5: 8.67 - 8.39 GFLOPs are 19 of the 76 heads' softmax.
_MFORMER_FFN = (1792, 1792, 1344, 896, 672, 896, 1344, 1568, 1792, 1344, 672, 672)
_MFORMER_HEADS = (5, 5, 6, 7, 7, 7, 6, 7, 6, 6, 7, 7)
_SUBNET_S_FFN = (1152, 1344, 1152, 1344, *[1536] * 7, 1344, 1536)
_SUBNET_S_HEADS = (6, 6, 5, 7, 5, 5, 5, 6, 6, 7, 7, 6, 7)

_FOUND = {
    "cosformer_star_cifar10": _architecture(448, _COSFORMER_FFN, _COSFORMER_HEADS, ["linear"] * 12),
    "cosformer_star_softmax_cifar10": _architecture(448, _COSFORMER_FFN, _COSFORMER_HEADS, ["softmax"] * 12),
    "mformer_like_cifar10": _architecture(
        384, _MFORMER_FFN, _MFORMER_HEADS, ["linear" if layer in (3, 7, 11) else "softmax" for layer in range(1, 13)]
    ),
    "mformer_like_softmax_cifar10": _architecture(384, _MFORMER_FFN, _MFORMER_HEADS, ["softmax"] * 12),
    "mformer_like_linear_cifar10": _architecture(384, _MFORMER_FFN, _MFORMER_HEADS, ["linear"] * 12),
    "subnet_s_cifar10": _architecture(384, _SUBNET_S_FFN, _SUBNET_S_HEADS, ["softmax"] * 13),
    "vanilla_softmax_cifar10": _architecture(512, [2048] * 6, [8] * 6, ["softmax"] * 6, relative_clip=0),
    "vanilla_linear_cifar10": _architecture(512, [2048] * 6, [8] * 6, ["linear"] * 6, relative_clip=0),
}


def image_architecture(name: str) -> Architecture:
    """Return an architecture of Liu et al. 2022, "Neural Architecture Search on Efficient Transformers and Beyond".

    ``cosformer_star_cifar10`` and ``subnet_s_cifar10`` are from the authors' files, ``vanilla_*`` from the paper.
    ``mformer_like_cifar10`` has mFormer's width, linear layers, and sums of heads and FFN widths. Names with
    ``softmax`` or ``linear`` have that attention in all layers (Table 5).
    """
    check_choice("image architecture", name, _FOUND)
    return _FOUND[name]
