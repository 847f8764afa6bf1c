"""Vision transformers with a choice of attention per layer."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.models.image.net import VisionConfig, VisionNet

__all__ = [
    "VisionConfig",
    "VisionNet",
]

__getattr__, __dir__ = lazy_names(__name__)
