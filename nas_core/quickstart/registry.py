"""The quickstarts by name."""

from __future__ import annotations

from nas_core.quickstart.kind import Quickstart
from nas_core.registry import Registry

QUICKSTARTS: Registry[Quickstart] = Registry(
    "quickstart",
    "nas_ext.quickstarts",
    {
        "predictor": "nas_core.quickstart.predictor:PREDICTOR",
        "latency": "nas_core.quickstart.latency:LATENCY",
    },
    Quickstart,
)
"""Those of adapters and of other distributions are entry points; a new one is a subclass of :class:`Quickstart`."""
