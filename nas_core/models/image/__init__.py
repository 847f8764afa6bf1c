"""Vision transformers whose layers choose softmax or linear attention."""

from nas_core.models.image.graph import image_graph
from nas_core.models.image.net import VisionNet
from nas_core.models.image.subnet import VisionConfig
from nas_core.models.image.workload import ImageWorkload, ImageWorkloadConfig

__all__ = ["ImageWorkload", "ImageWorkloadConfig", "VisionConfig", "VisionNet", "image_graph"]
