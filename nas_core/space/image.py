"""Image transformers: their genes, the spaces of mFormer and AutoFormer, and what a layer of an architecture is.

Genes of the network: ``layers``, ``embed_dim``, ``image_size``, ``patch_size``, ``head_dim``, ``relative_clip`` (0: no
relative positions). Genes of each layer: ``heads``, ``attention`` (a kind of :mod:`nas_core.layers.attention`;
absent where all layers use softmax), and either ``ffn_dim`` or ``mlp_ratio``, the feed-forward width in units of
``embed_dim``. Queries, keys and values have width ``heads * head_dim``, whatever ``embed_dim`` is.
"""

from __future__ import annotations

from collections.abc import Sequence

from nas_core.errors import ArchitectureError
from nas_core.space.architecture import Architecture
from nas_core.space.choice import Choice
from nas_core.space.registry import register_space
from nas_core.space.space import SearchSpace
from nas_core.space.stack import TransformerLayer, attention_choice, per_layer, size_choices, transformer_layers


def image_layers(architecture: Architecture) -> tuple[TransformerLayer, ...]:
    """The layers of an architecture, first to last.

    Raises:
        ArchitectureError: a gene of image networks is missing, or has not one option per layer.
    """
    if "ffn_dim" in architecture:
        return transformer_layers(architecture)
    depth, width = architecture.number("layers"), architecture.number("embed_dim")
    ratios = per_layer(architecture, "mlp_ratio", depth)
    return transformer_layers(architecture, [round(float(ratio) * width) for ratio in ratios])


def token_grid(architecture: Architecture, image_size: int | None = None) -> int:
    """Patches along each side of the image.

    Raises:
        ArchitectureError: the patch size does not divide the image size.
    """
    size = architecture.number("image_size") if image_size is None else image_size
    patch = architecture.number("patch_size")
    if size < 1 or patch < 1 or size % patch:
        raise ArchitectureError(f"images of {size} pixels do not divide into patches of {patch}; change one of them")
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
    """A space of image transformers; feed-forward widths by ``ffn_dims`` or by ``mlp_ratios``.

    A single kind of attention, by the name that ``nas_core.layers.attention.KINDS`` has, becomes a fixed gene, several
    a choice of each layer. ``relative_clip``: distance in tokens from which on relative positions count as equal, in
    softmax attention; 0 for none.
    """
    fixed = {"head_dim": head_dim, "image_size": image_size, "patch_size": patch_size, "relative_clip": relative_clip}
    ffn = {"ffn_dim": ffn_dims} if ffn_dims else {"mlp_ratio": mlp_ratios}
    choices = size_choices(layers, embed_dims, heads, **ffn)
    if len(attention) > 1:
        return SearchSpace(name, [*choices, attention_choice(attention, max(layers))], fixed)
    return SearchSpace(name, choices, {**fixed, "attention": attention[0]})


def static_image_space(architecture: Architecture) -> SearchSpace:
    """The space that holds exactly this architecture, whether or not it belongs to a registered one."""
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
    """mFormer's space for CIFAR-10 (Liu et al. 2022, "Neural Architecture Search on Efficient Transformers and
    Beyond", Table 2): 1.5e21 architectures, 9.4e16 with one kind of attention. Images are enlarged to 224 pixels, as in
    the authors' code."""
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
    """AutoFormer's small space (Chen et al. 2021, "AutoFormer: Searching Transformers for Visual Recognition", Table
    1). Relative positions are mFormer's, on keys and along the raster order; AutoFormer's are two-dimensional, on keys
    and values."""
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
    """mFormer's shape at a size that two processor cores train: 32 x 32 pixels as 64 tokens."""
    return _small("mformer_cifar10_small", ("softmax", "linear"))


@register_space
def vit_cifar10_small() -> SearchSpace:
    """The same with softmax attention in all layers."""
    return _small("vit_cifar10_small", ("softmax",))
