"""NASLib plug-in: accuracy models as predictors for NASLib's evaluator and search methods.

:class:`AccuracyPredictor` works without NASLib. Importing this package does not import NASLib.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from naslib_ext.plugin import register
    from naslib_ext.predictor import AccuracyPredictor

__all__ = [
    "AccuracyPredictor",
    "register",
]

__getattr__, __dir__ = lazy_names(__name__)
