"""Zero-cost proxies: scores of untrained networks from one batch."""

from nas_core.proxies.networks import NasBench201Proxies, NetworkProxies, SpaceProxies, proxy_loss
from nas_core.proxies.scoring import PROXIES, zero_cost
from nas_core.proxies.trial import Proxy, Trial

__all__ = [
    "PROXIES",
    "NasBench201Proxies",
    "NetworkProxies",
    "Proxy",
    "SpaceProxies",
    "Trial",
    "proxy_loss",
    "zero_cost",
]
