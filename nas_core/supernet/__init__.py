"""How subnets share weights: the subnets a step trains, how stable it is, and the adapters of hosts."""

from nas_core.supernet.active import SubnetHolder
from nas_core.supernet.exportable import open_exportable
from nas_core.supernet.host import (
    BertSupernet,
    Differentiable,
    Host,
    PlainSupernet,
    StandaloneTraining,
    Supernet,
    open_supernet,
)
from nas_core.supernet.sampling import draw, sandwich, validation_set

__all__ = [
    "BertSupernet",
    "Differentiable",
    "Host",
    "PlainSupernet",
    "StandaloneTraining",
    "SubnetHolder",
    "Supernet",
    "draw",
    "open_exportable",
    "open_supernet",
    "sandwich",
    "validation_set",
]
