"""How subnets share weights: the subnets a step trains, how stable it is, and the adapters of hosts."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.supernet.active import SubnetHolder
    from nas_core.supernet.exportable import open_exportable
    from nas_core.supernet.host import (
        BertSupernet,
        Differentiable,
        Host,
        MoreMetrics,
        PlainSupernet,
        Supernet,
        open_supernet,
    )
    from nas_core.supernet.sampling import draw, sandwich, validation_set
    from nas_core.supernet.training import FurtherTraining, StandaloneTraining, SupernetTraining

__all__ = [
    "BertSupernet",
    "Differentiable",
    "FurtherTraining",
    "Host",
    "MoreMetrics",
    "PlainSupernet",
    "StandaloneTraining",
    "SubnetHolder",
    "Supernet",
    "SupernetTraining",
    "draw",
    "open_exportable",
    "open_supernet",
    "sandwich",
    "validation_set",
]

__getattr__, __dir__ = lazy_names(__name__)
