"""Vision transformers with a kind of attention per layer."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.models.image.kind import image_graph
    from nas_core.models.image.net import VisionConfig, VisionNet
    from nas_core.models.image.workload import ImageWorkload, ImageWorkloadConfig

__all__ = ["ImageWorkload", "ImageWorkloadConfig", "VisionConfig", "VisionNet", "image_graph"]

__getattr__, __dir__ = lazy_names(__name__)
