"""Zero-cost proxies: scores of untrained networks, computed on one batch."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.proxies.scoring import PROXIES, zero_cost
    from nas_core.proxies.trial import Proxy

__all__ = [
    "PROXIES",
    "Proxy",
    "zero_cost",
]

__getattr__, __dir__ = lazy_names(__name__)
