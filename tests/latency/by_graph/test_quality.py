"""Tables by family."""

from __future__ import annotations

import pytest

from nas_core.errors import DataError
from nas_core.latency.by_graph.quality import FamilyQuality, family_quality, family_table

MEASURED = [1.0, 1.0, 2.0, 4.0]
PREDICTED = [1.05, 1.5, 2.0, 4.3]


def test_rows_average_and_all_by_hand() -> None:
    rows = family_quality(PREDICTED, MEASURED, ["a", "b", "b", "b"])
    assert list(rows) == ["a", "b", "average", "all"]
    assert rows["a"] == FamilyQuality(1, pytest.approx(5.0), 100.0)
    assert rows["b"] == FamilyQuality(3, pytest.approx(57.5 / 3), pytest.approx(200 / 3))
    assert rows["average"] == FamilyQuality(4, pytest.approx((5 + 57.5 / 3) / 2), pytest.approx((100 + 200 / 3) / 2))
    assert rows["all"] == FamilyQuality(4, pytest.approx(62.5 / 4), 75.0)


def test_the_table_has_a_line_for_each() -> None:
    lines = family_table(family_quality(PREDICTED, MEASURED, ["a", "b", "b", "b"])).splitlines()
    assert len(lines) == 5 and lines[1].split() == ["a", "1", "5.00", "100.00"]


def test_rows_that_do_not_fit_are_refused() -> None:
    for predicted, families in ((PREDICTED[:3], "abbb"), (PREDICTED, "abb")):
        with pytest.raises(DataError, match="expected equal rows"):
            family_quality(predicted, MEASURED, list(families))
    with pytest.raises(DataError, match="non-empty"):
        family_quality([], [], [])
