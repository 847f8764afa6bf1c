"""Kinds of attention as numbers, for encodings and for the smallest and the largest architecture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LINEAR_FIRST = {"linear": 0.0, "softmax": 1.0}
"""Codes of published spaces, in the order that files of spaces for translation and for masked language models have: a
space with another order is another space."""


def attention_codes(kinds: Sequence[Any], published: Mapping[Any, float]) -> dict[Any, float]:
    """The codes of published spaces, softmax 1 and linear 0, and for other kinds numbers evenly between them: so no two
    kinds look alike, and the largest architecture stays all softmax where it can.

    Args:
        kinds: names of kinds, or a list of names for each layer.
    """
    rows = [kind if isinstance(kind, list | tuple) else (kind,) for kind in kinds]
    others = [kind for kind in dict.fromkeys(kind for row in rows for kind in row) if kind not in published]
    return {**published, **{kind: (place + 1) / (len(others) + 1) for place, kind in enumerate(others)}}
