"""Studies by name."""

from __future__ import annotations

from nas_core.registry import Registry
from nas_core.studies.base import Study

STUDIES: Registry[Study] = Registry(
    "study",
    "",
    {
        "gap": "nas_core.studies.gap.study:GAP",
        "close-gap": "nas_core.studies.close_gap.study:CLOSE_GAP",
        "routing": "nas_core.studies.routing:ROUTING",
        "conflict": "nas_core.studies.conflict:CONFLICT",
        "stability": "nas_core.studies.stability:STABILITY",
        "overhead": "nas_core.studies.overhead:OVERHEAD",
        "experts": "nas_core.studies.experts.study:EXPERTS",
        "router": "nas_core.studies.experts.study:ROUTER",
    },
    Study,
)
"""A new one is a file and a line here; a program calls ``STUDIES.register``."""
