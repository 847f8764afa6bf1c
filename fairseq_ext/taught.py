"""Settings of a subnet without the teacher that its supernet learned from: the criterion that it goes on with."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

__all__ = ["OF_FAIRSEQ", "without_teacher"]

OF_FAIRSEQ = {
    "fused_label_smoothed_cross_entropy": "label_smoothed_cross_entropy",
    "distilled_label_smoothed_cross_entropy": "label_smoothed_cross_entropy",
    "distilled_cross_entropy": "cross_entropy",
    "distilled_masked_lm": "masked_lm",
}
"""Criterion of this plug-in -> fairseq's own, which computes the same without a teacher."""
_TAUGHT = "distilled_"
_OF_A_TEACHER = ("teacher", "distill_")
"""How the options of a teacher begin."""


def without_teacher(settings: dict[str, Any], plain: bool = False) -> None:
    """Name fairseq's own criterion instead of one that learns from a teacher, and drop the teacher's options, which
    may name a file that is gone.

    Args:
        settings: the groups of settings, as under ``cfg`` of a checkpoint; changed in place.
        plain: whether fairseq alone shall know the criterion: then the fused one is replaced too.
    """
    criterion, args = settings.get("criterion"), settings.get("model")
    if isinstance(criterion, dict):
        _forget(criterion, "_name", plain)
    if isinstance(args, Namespace):  # fairseq keeps the options of all groups there
        _forget(vars(args), "criterion", plain)


def _forget(options: dict[str, Any], key: str, plain: bool) -> None:
    name = options.get(key)
    if name in OF_FAIRSEQ and (plain or name.startswith(_TAUGHT)):
        options[key] = OF_FAIRSEQ[name]
    for option in [option for option in options if option.startswith(_OF_A_TEACHER)]:
        del options[option]
