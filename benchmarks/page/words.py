"""Numbers and tables as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal

__all__ = ["count", "fixed", "joined", "significant", "spread", "table", "times"]


def fixed(value: float | None, digits: int = 1) -> str:
    """A number with so many digits behind the point, halves rounded up; nothing where there is none."""
    if value is None:
        return ""
    return f"{Decimal(str(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):,}"


def count(value: float) -> str:
    """A whole number with commas."""
    return fixed(value, 0)


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits; whole where it is larger."""
    if isinstance(value, int) or abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def times(value: float, digits: int = 1) -> str:
    """How many times as much."""
    return f"{fixed(value, digits)} x"


def spread(values: Sequence[float], digits: int = 0) -> str:
    """The smallest to the largest of some numbers, or the one that all are."""
    low, high = (fixed(edge, digits) for edge in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def joined(parts: Iterable[str]) -> str:
    """Words in a row: a, b and c."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A Markdown table; columns after the first ``left`` ones are numbers, which stand on the right."""
    rule = ["---" if place < left else "---:" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))
