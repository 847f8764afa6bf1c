"""Whether a trained supernet can be trusted: studies of its routers, gradients, estimates, cost and search."""

from nas_core.studies.base import Study, Subject, open_subjects
from nas_core.studies.registry import STUDIES
from nas_core.studies.result import Bars, Lines, Measure, Pairs, Squares, StudyResult
from nas_core.studies.routing import mixture_distance, mixtures_of, shannon_distance

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
