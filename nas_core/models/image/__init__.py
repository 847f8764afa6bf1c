"""Vision transformers whose layers choose their kind of attention."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.models.image.graph import image_graph
    from nas_core.models.image.net import VisionNet
    from nas_core.models.image.subnet import VisionConfig
    from nas_core.models.image.workload import ImageWorkload, ImageWorkloadConfig

__all__ = ["ImageWorkload", "ImageWorkloadConfig", "VisionConfig", "VisionNet", "image_graph"]

__getattr__, __dir__ = lazy_names(__name__)
