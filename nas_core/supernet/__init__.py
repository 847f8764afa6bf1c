"""How subnets share weights: networks over a space, the subnets a step trains, static subnets, host adapters."""

from nas_core.supernet.host import Host, Supernet, open_supernet
from nas_core.supernet.image import VisionNet
from nas_core.supernet.image_subnet import VisionConfig
from nas_core.supernet.sampling import draw, sandwich, validation_set
from nas_core.supernet.subnet import TranslationConfig
from nas_core.supernet.translation import TranslationNet

__all__ = [
    "Host",
    "Supernet",
    "TranslationConfig",
    "TranslationNet",
    "VisionConfig",
    "VisionNet",
    "draw",
    "open_supernet",
    "sandwich",
    "validation_set",
]
