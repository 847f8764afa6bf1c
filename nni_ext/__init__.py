"""NNI plug-in: predictors as profilers and evaluators, search spaces as model spaces, searches as strategies and
tuners.

Importing this package does not import NNI. Import it before ``nni.nas`` if a CUDA build of torchvision is installed
next to a CPU build of torch: NNI imports torchvision, which then fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nas_core import startup
from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nni_ext.graphs import (
        architecture_of,
        nasbench101_sample,
        nasbench201_sample,
        nasbench201_unpruned_sample,
    )
    from nni_ext.hpo.tuner import SearchTuner
    from nni_ext.nas.evaluator import PredictorEvaluator
    from nni_ext.nas.limits import ProfilerLimit
    from nni_ext.nas.profilers import NetworkLatencyProfiler, PredictorProfiler
    from nni_ext.nas.spaces import ArchitectureSpace, as_model_space
    from nni_ext.nas.strategy import SearchStrategy

__all__ = [
    "ArchitectureSpace",
    "NetworkLatencyProfiler",
    "PredictorEvaluator",
    "PredictorProfiler",
    "ProfilerLimit",
    "SearchStrategy",
    "SearchTuner",
    "architecture_of",
    "as_model_space",
    "nasbench101_sample",
    "nasbench201_sample",
    "nasbench201_unpruned_sample",
]

startup.install()  # torchvision is repaired when it is imported, if it ever is

__getattr__, __dir__ = lazy_names(__name__)
