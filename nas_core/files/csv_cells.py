"""Cells of tables that programs for tables open."""

from __future__ import annotations

from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A program for tables takes what begins so for a formula, and computes it."""


def csv_cell(value: Any) -> Any:
    """The value of a cell: a text that a program for tables would compute stands behind an apostrophe, which such a
    program reads as: a text follows. Numbers stay as they are, also those written as texts, and several in one text."""
    if not isinstance(value, str) or not value.startswith(_FORMULA):
        return value
    if all(_is_number(part) for part in value.split(" ")):
        return value
    return f"'{value}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
