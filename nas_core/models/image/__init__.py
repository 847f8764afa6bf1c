"""Vision transformers whose layers choose their kind of attention."""

from nas_core.models.image.net import VisionNet
from nas_core.models.image.subnet import VisionConfig

__all__ = ["VisionConfig", "VisionNet"]
