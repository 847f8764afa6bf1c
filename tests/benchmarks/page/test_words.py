"""Numbers and tables as text."""

from __future__ import annotations

import pytest

from benchmarks.page.section import anchor, wrapped
from benchmarks.page.words import count, fixed, joined, significant, spread, table, times


@pytest.mark.parametrize("value, digits, text", [(1.65, 1, "1.7"), (0.5, 0, "1"), (3.998, 2, "4.00"), (None, 1, "")])
def test_halves_are_rounded_up(value: float | None, digits: int, text: str) -> None:
    assert fixed(value, digits) == text


def test_numbers_in_words() -> None:
    assert (count(41461632), count(521.5), times(2.759)) == ("41,461,632", "522", "2.8 x")
    assert (spread([3, 1, 2]), spread([2, 2]), joined("abc"), joined("a")) == ("1 to 3", "2", "a, b and c", "a")
    assert [significant(value) for value in (3.14159, 12345.6, 7, 0.0212525)] == ["3.14", "12,346", "7", "0.0213"]


def test_a_table_has_numbers_on_the_right() -> None:
    assert table(["a", "b"], [["x", "1"]]) == "| a | b |\n| --- | ---: |\n| x | 1 |"


def test_anchors_and_filled_lines() -> None:
    assert anchor("Speed of NN-Former") == "speed-of-nn-former"
    long = "- " + "word " * 40 + "`code that stays in one line`\n- b"
    lines = wrapped(f"{long}\n\n| a |\n").splitlines()
    assert max(map(len, lines)) <= 118 and lines[1].startswith("  ") and lines[-3:] == ["- b", "", "| a |"]
    assert any("`code that stays in one line`" in line for line in lines)
