"""NNI plug-in: predictors of ``nas_core`` as profilers and evaluators, its search spaces as model spaces, and its
searches as strategies.

Importing this package imports nothing of NNI; a name does when it is first used. It translates between NNI and
``nas_core``; what is computed lives there. Import it before ``nni.nas`` where a CUDA build of torchvision lies beside a
CPU build of torch: NNI imports torchvision through pytorch-lightning, which fails there without our help.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from nas_core import startup

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

_HOMES = {
    "ArchitectureSpace": "nas.space",
    "NetworkLatencyProfiler": "nas.network_profiler",
    "PredictorEvaluator": "nas.evaluator",
    "PredictorProfiler": "nas.profiler",
    "ProfilerLimit": "nas.profiler_limit",
    "SearchStrategy": "nas.search_strategy",
    "SearchTuner": "hpo.tuner",
    "architecture_of": "graphs",
    "as_model_space": "nas.space",
    "nasbench101_sample": "graphs",
    "nasbench201_sample": "graphs",
    "nasbench201_unpruned_sample": "graphs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
