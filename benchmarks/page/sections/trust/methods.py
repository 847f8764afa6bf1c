"""Ways of training a supernet beside each other: tables and sentences that several sections share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from benchmarks.page.words import fixed, joined, table

__all__ = [
    "PAPERS",
    "REFERENCE",
    "SPOS",
    "centred",
    "change",
    "changes",
    "compared",
    "methods",
    "pairs",
    "signed",
    "told",
]

REFERENCE = "sandwich"
"""What errors are compared with, as in the paper."""
SPOS = "SPOS"
"""What further training is compared with: the paper's HAT."""
PAPERS = ("layer-wise", "neuron-wise")
HEAD = ("error", "to sandwich", "centred", "tau", "inherited loss", "to sandwich", "conflict", "routing")

Row = Mapping[str, Any]


def methods(rows: Iterable[Row], alone: Sequence[float] = ()) -> dict[str, list[Row]]:
    """The rows of each method, one for each seed.

    Args:
        alone: standalone losses of the networks, in the order of each row's ``inherited``; with them rows have a
            ``centred`` error.
    """
    found: dict[str, list[Row]] = {}
    for row in rows:
        more = {"centred": centred(row["inherited"], alone)} if alone else {}
        found.setdefault(row["method"], []).append({**row, **more})
    return found


def centred(values: Sequence[float], others: Sequence[float] | None = None) -> float:
    """The mean absolute difference of two lists, or of one from nothing, once its mean is taken away."""
    apart = [one - other for one, other in zip(values, others or [0.0] * len(values), strict=True)]
    return mean(abs(one - mean(apart)) for one in apart)


def pairs(rows: Sequence[Row], reference: Sequence[Row], value: str) -> list[tuple[float, float]]:
    """A value of two methods, for each seed that both have."""
    beside = {row["seed"]: row[value] for row in reference}
    return [(row[value], beside[row["seed"]]) for row in rows if row["seed"] in beside]


def change(rows: Sequence[Row], reference: Sequence[Row], value: str) -> float | None:
    """By how much a value is another than the reference's of the same seeds, as share of it; None without any."""
    found = pairs(rows, reference, value)
    return sum(own for own, _ in found) / sum(other for _, other in found) - 1 if found else None


def changes(found: Mapping[str, Sequence[Row]], value: str, reference: str = REFERENCE) -> dict[str, float]:
    """The same of each method that the paper has."""
    shares = {name: change(found[name], found.get(reference, ()), value) for name in PAPERS if name in found}
    return {name: share for name, share in shares.items() if share is not None}


def signed(share: float, digits: int = 0) -> str:
    """A change in per cent."""
    return f"{'+' if share > 0 else '−' if share < 0 else ''}{fixed(abs(100 * share), digits)} %"


def told(shares: Mapping[str, float], digits: int = 0) -> str:
    """Changes by method, in words."""
    return joined(f"{signed(share, digits)} {name}" for name, share in shares.items()) if shares else "not measured yet"


def compared(found: Mapping[str, Sequence[Row]], first: str = "") -> str:
    """A table with a line for each method; means and deviations over seeds."""
    return table([first, *HEAD], [[name, *_line(name, rows, found.get(REFERENCE, ()))] for name, rows in found.items()])


def _line(method: str, rows: Sequence[Row], reference: Sequence[Row]) -> list[str]:
    def of(value: str, digits: int) -> str:
        return _of_seeds([row[value] for row in rows], digits)

    def beside(value: str, digits: int) -> str:
        share = None if method == REFERENCE else change(rows, reference, value)
        return "" if share is None else signed(share, digits)

    routing = [row["routing"]["extremes"] for row in rows if row["routing"]]
    return [
        of("error", 3), beside("error", 0), fixed(mean(row["centred"] for row in rows), 3), of("tau", 2),
        of("inherited_loss", 3), beside("inherited_loss", 1),
        fixed(mean(row["conflict"]["smallest"] for row in rows), 2), fixed(mean(routing), 2) if routing else "",
    ]  # fmt: skip


def _of_seeds(values: Sequence[float], digits: int) -> str:
    """The mean, with the deviation where there are several seeds."""
    apart = f" ± {fixed(stdev(values), digits)}" if len(values) > 1 else ""
    return f"{fixed(mean(values), digits)}{apart}"
