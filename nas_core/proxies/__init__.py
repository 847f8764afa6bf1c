"""Zero-cost proxies: scores of untrained networks, computed on one batch."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.proxies.scoring import PROXIES, Trial, zero_cost

__all__ = [
    "PROXIES",
    "Trial",
    "zero_cost",
]

__getattr__, __dir__ = lazy_names(__name__)
