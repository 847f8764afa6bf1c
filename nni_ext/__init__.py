"""NNI plug-in: predictors of ``nas_core`` as profilers and evaluators, its search spaces as model spaces, and its
searches as strategies.

Importing this package imports nothing of NNI; a name does when it is first used. It translates between NNI and
``nas_core``; what is computed lives there. Import it before ``nni.nas`` where a CUDA build of torchvision lies beside a
CPU build of torch: NNI imports torchvision through pytorch-lightning, which fails there without our help.
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
    from nni_ext.nas.network_profiler import NetworkLatencyProfiler
    from nni_ext.nas.profiler import PredictorProfiler
    from nni_ext.nas.profiler_limit import ProfilerLimit
    from nni_ext.nas.search_strategy import SearchStrategy
    from nni_ext.nas.space import ArchitectureSpace, as_model_space

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
