"""Studies of a trained supernet: its routers, gradients, estimates, cost and search."""

from nas_core.registry import Registry
from nas_core.studies.base import (
    Bars,
    Lines,
    Measure,
    Pairs,
    Squares,
    Study,
    StudyResult,
    Subject,
    open_subjects,
)
from nas_core.studies.routing import mixture_distance, mixtures_of, shannon_distance

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

__all__ = [
    "STUDIES",
    "Bars",
    "Lines",
    "Measure",
    "Pairs",
    "Squares",
    "Study",
    "StudyResult",
    "Subject",
    "mixture_distance",
    "mixtures_of",
    "open_subjects",
    "shannon_distance",
]
