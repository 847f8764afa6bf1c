"""What networks may become, from one batch and no training: zero-cost proxies."""

from nas_core.proxies.base import Proxy
from nas_core.proxies.networks import NasBench201Proxies, NetworkProxies, SpaceProxies, proxy_loss
from nas_core.proxies.registry import PROXIES
from nas_core.proxies.scoring import zero_cost
from nas_core.proxies.trial import Trial

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
