"""Studies of trained supernets: routers, gradients, quality of subnets, cost of experts, stability of searches."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names
from nas_core.registry import Registry
from nas_core.studies.base import Study

if TYPE_CHECKING:
    from nas_core.studies.base import Measure, StudyResult, Subject

STUDIES: Registry[Study] = Registry(
    "study",
    "",
    {
        "gap": "nas_core.studies.gap:GAP",
        "close-gap": "nas_core.studies.close_gap:CLOSE_GAP",
        "routing": "nas_core.studies.routing:ROUTING",
        "conflict": "nas_core.studies.conflict:CONFLICT",
        "stability": "nas_core.studies.stability:STABILITY",
        "overhead": "nas_core.studies.overhead:OVERHEAD",
        "experts": "nas_core.studies.experts:EXPERTS",
        "router": "nas_core.studies.experts:ROUTER",
    },
    Study,
)
"""Registry of studies; add one with ``STUDIES.register``."""

__all__ = [
    "STUDIES",
    "Measure",
    "Study",
    "StudyResult",
    "Subject",
]

__getattr__, __dir__ = lazy_names(__name__)
