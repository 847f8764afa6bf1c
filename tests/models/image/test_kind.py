"""Image networks as a kind of network."""

from __future__ import annotations

from nas_core.space import SearchSpace
from nas_core.space.image import image_space
from tests.contracts.network_kind import NetworkKindContract


def tiny(**changes: object) -> SearchSpace:
    settings = {
        "layers": (1, 2, 3),
        "embed_dims": (8, 12),
        "ffn_dims": (8, 16),
        "heads": (1, 2, 3),
        "head_dim": 4,
        "image_size": 16,
        "patch_size": 4,
        "attention": ("softmax", "linear"),
        "relative_clip": 3,
    }
    return image_space("tiny", **{**settings, **changes})  # type: ignore[arg-type]


class TestImage(NetworkKindContract):
    name = "image"

    def space(self) -> SearchSpace:
        return tiny()


class TestRatios(TestImage):
    """Feed-forward widths in units of the embedding's, softmax attention alone, no relative positions."""

    settings = {"batch": 2}  # noqa: RUF012

    def space(self) -> SearchSpace:
        return tiny(ffn_dims=(), mlp_ratios=(2.0, 3.5), attention=("softmax",), relative_clip=0)
