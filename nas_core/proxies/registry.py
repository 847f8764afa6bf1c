"""Zero-cost proxies by name."""

from __future__ import annotations

from nas_core.proxies.base import Proxy
from nas_core.registry import Registry

PROXIES: Registry[Proxy] = Registry(
    "zero-cost proxy",
    "",
    {
        "params": "nas_core.proxies.counts:PARAMS",
        "flops": "nas_core.proxies.counts:FLOPS",
        "synflow": "nas_core.proxies.synflow:SYNFLOW",
        "nwot": "nas_core.proxies.activations:NWOT",
        "jacov": "nas_core.proxies.jacobian:JACOV",
        "grad_norm": "nas_core.proxies.gradients:GRAD_NORM",
        "snip": "nas_core.proxies.gradients:SNIP",
    },
    Proxy,
)
"""A new one is a file and a line here; a program calls ``PROXIES.register``."""
