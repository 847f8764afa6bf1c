"""Distillation: losses, a cache of teacher outputs, and recording of activations."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.supernet.teacher.cache import CacheSettings, TeacherCache, weights_digest
    from nas_core.supernet.teacher.losses import (
        TopK,
        distillation_loss,
        hidden_loss,
        naive_distillation_loss,
        top_k,
        top_k_distillation_loss,
    )
    from nas_core.supernet.teacher.taps import Taps, weights_of

__all__ = [
    "CacheSettings",
    "Taps",
    "TeacherCache",
    "TopK",
    "distillation_loss",
    "hidden_loss",
    "naive_distillation_loss",
    "top_k",
    "top_k_distillation_loss",
    "weights_digest",
    "weights_of",
]

__getattr__, __dir__ = lazy_names(__name__)
