"""Image architectures that were published, as far as they are known layer by layer.

Liu et al. 2022, "Neural Architecture Search on Efficient Transformers and Beyond" (mFormer), Tables 4 and 5, Figure 6
and the configuration files of the authors' code.
"""

from __future__ import annotations

from collections.abc import Sequence

from nas_core.errors import unknown_choice
from nas_core.space.architecture import Architecture


def _made(
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
# Sums, kinds of attention and the trends are the paper's ("large early, then down, up, down; heads inverse to that");
# the single values are printed nowhere and were chosen here to have those sums. That the linear layers have 19 heads
# follows from Table 5: 8.67 - 8.39 GFLOPs are 19 of the 76 heads' softmax.
_MFORMER_FFN = (1792, 1792, 1344, 896, 672, 896, 1344, 1568, 1792, 1344, 672, 672)
_MFORMER_HEADS = (5, 5, 6, 7, 7, 7, 6, 7, 6, 6, 7, 7)
_SUBNET_S_FFN = (1152, 1344, 1152, 1344, *[1536] * 7, 1344, 1536)
_SUBNET_S_HEADS = (6, 6, 5, 7, 5, 5, 5, 6, 6, 7, 7, 6, 7)

_FOUND = {
    "cosformer_star_cifar10": _made(448, _COSFORMER_FFN, _COSFORMER_HEADS, ["linear"] * 12),
    "cosformer_star_softmax_cifar10": _made(448, _COSFORMER_FFN, _COSFORMER_HEADS, ["softmax"] * 12),
    "mformer_like_cifar10": _made(
        384, _MFORMER_FFN, _MFORMER_HEADS, ["linear" if layer in (3, 7, 11) else "softmax" for layer in range(1, 13)]
    ),
    "mformer_like_softmax_cifar10": _made(384, _MFORMER_FFN, _MFORMER_HEADS, ["softmax"] * 12),
    "mformer_like_linear_cifar10": _made(384, _MFORMER_FFN, _MFORMER_HEADS, ["linear"] * 12),
    "subnet_s_cifar10": _made(384, _SUBNET_S_FFN, _SUBNET_S_HEADS, ["softmax"] * 13),
    "vanilla_softmax_cifar10": _made(512, [2048] * 6, [8] * 6, ["softmax"] * 6, relative_clip=0),
    "vanilla_linear_cifar10": _made(512, [2048] * 6, [8] * 6, ["linear"] * 6, relative_clip=0),
}


def list_image_architectures() -> list[str]:
    """Names that :func:`image_architecture` knows."""
    return sorted(_FOUND)


def image_architecture(name: str) -> Architecture:
    """A published architecture.

    ``cosformer_star_cifar10`` (12 layers, all linear) and ``subnet_s_cifar10`` (13 layers) stand layer by layer in the
    authors' files, ``vanilla_*`` in the paper. Of mFormer's own only the sums, the width and the linear layers (3, 7,
    11) are printed: ``mformer_like_cifar10`` has these and so its parameters and FLOPs, not its single widths. Names
    with ``softmax`` or ``linear`` are the same networks with one kind of attention, as in Table 5.

    Raises:
        UnknownChoiceError: no such name; the message lists them.
    """
    if name not in _FOUND:
        raise unknown_choice("image architecture", name, list_image_architectures())
    return _FOUND[name]
