"""Supernets: sampling of subnets, conversion of trained models, distillation, and adapters of hosts."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.supernet.active import SubnetHolder
    from nas_core.supernet.host import Host, Supernet, open_exportable, open_supernet, open_trained
    from nas_core.supernet.sampling import draw, sandwich, validation_set

__all__ = [
    "Host",
    "SubnetHolder",
    "Supernet",
    "draw",
    "open_exportable",
    "open_supernet",
    "open_trained",
    "sandwich",
    "validation_set",
]

__getattr__, __dir__ = lazy_names(__name__)
