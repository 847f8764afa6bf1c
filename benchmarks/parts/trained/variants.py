"""Ways to make a supernet around a trained network, which benchmarks compare."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Variant:
    """How a supernet is made."""

    name: str
    taken_over: bool = True
    importance: str = "activation"
    """By what it is sorted before it is trained."""
    teacher: bool = True
    mos: str = "none"

    @property
    def calibration(self) -> tuple[object, ...]:
        """The options of ``nas-ext elastic`` by which it is sorted."""
        return ("--importance", self.importance, *(() if self.importance == "none" else ("--calibrate", 16)))


FULL = Variant("sorted, with teacher")
ABLATIONS = (
    FULL,
    Variant("sorted, without teacher", teacher=False),
    Variant("not sorted, with teacher", importance="none"),
    Variant("not sorted, without teacher", importance="none", teacher=False),
    Variant("from random weights", taken_over=False, importance="none", teacher=False),
)


def slug(name: str) -> str:
    """A variant's or network's name as one of a file."""
    return name.replace(", ", "-").replace(" ", "_")
