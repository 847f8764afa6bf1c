"""NNI plug-in: predictors of ``nas_core`` as profilers and evaluators, search spaces of ``nas_core`` as model spaces.

Importing this package imports nothing of NNI; a name does when it is first used. It translates between NNI and
``nas_core``; what is computed lives there. Import it before ``nni.nas`` where a CUDA build of torchvision lies beside a
CPU build of torch: NNI imports torchvision through pytorch-lightning, which fails there without our help.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from nas_core.torchvision_fix import apply_torchvision_fix

if TYPE_CHECKING:
    from nni_ext.evaluator import PredictorEvaluator
    from nni_ext.graphs import (
        architecture_of,
        nasbench101_sample,
        nasbench201_sample,
        nasbench201_unpruned_sample,
    )
    from nni_ext.profiler import PredictorProfiler
    from nni_ext.space import ArchitectureSpace, as_model_space

__all__ = [
    "ArchitectureSpace",
    "PredictorEvaluator",
    "PredictorProfiler",
    "architecture_of",
    "as_model_space",
    "nasbench101_sample",
    "nasbench201_sample",
    "nasbench201_unpruned_sample",
]

apply_torchvision_fix()

_MODULES = {
    "ArchitectureSpace": "space",
    "PredictorEvaluator": "evaluator",
    "PredictorProfiler": "profiler",
    "architecture_of": "graphs",
    "as_model_space": "space",
    "nasbench101_sample": "graphs",
    "nasbench201_sample": "graphs",
    "nasbench201_unpruned_sample": "graphs",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
