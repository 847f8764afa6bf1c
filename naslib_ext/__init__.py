"""NASLib plug-in: accuracy models as predictors of NASLib's evaluator and search methods.

Importing this package does not import NASLib. The predictors work without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from naslib_ext.plugin import register, unregister
    from naslib_ext.predictor import AccuracyPredictor

__all__ = [
    "AccuracyPredictor",
    "register",
    "unregister",
]

__getattr__, __dir__ = lazy_names(__name__)
