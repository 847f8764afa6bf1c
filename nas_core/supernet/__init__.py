"""Supernets: sampling of subnets, conversion of trained models, distillation, and host frameworks."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.supernet.host import Host, Supernet, open_supernet
    from nas_core.supernet.sampling import sandwich

__all__ = [
    "Host",
    "Supernet",
    "open_supernet",
    "sandwich",
]

__getattr__, __dir__ = lazy_names(__name__)
