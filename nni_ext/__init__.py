"""NNI plug-in: profilers, evaluators, model spaces, search strategies and a tuner.

Importing this package does not import NNI. Import it before ``nni.nas`` if torchvision is a CUDA build and torch a CPU
build; otherwise the import of ``nni.nas`` fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nas_core import startup
from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nni_ext.hpo.tuner import SearchTuner
    from nni_ext.nas.predictors import NetworkLatencyProfiler, PredictorEvaluator, PredictorProfiler
    from nni_ext.nas.spaces import as_model_space
    from nni_ext.nas.strategy import SearchStrategy

startup.install()

__all__ = [
    "NetworkLatencyProfiler",
    "PredictorEvaluator",
    "PredictorProfiler",
    "SearchStrategy",
    "SearchTuner",
    "as_model_space",
]

__getattr__, __dir__ = lazy_names(__name__)
