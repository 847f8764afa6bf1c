"""Settings of an interrupted run against those of now."""

from __future__ import annotations

from typing import Any

import pytest

from nas_core.differences import first_difference


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({"a": 1, "b": {"c": [1, 2]}}, {"b": {"c": (1, 2)}, "a": 1}, None),
        ({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}}, ("b.c", 2, 3)),
        ({"a": 1}, {"a": 1, "b": 2}, ("b", "nothing", 2)),
        ({"a": 1, "b": 2}, {"a": 1}, ("b", 2, "nothing")),
        ({"a": {}}, {"a": {"b": 1}}, ("a.b", "nothing", 1)),
    ],
)
def test_first_difference(before: dict[str, Any], now: dict[str, Any], expected: object) -> None:
    assert first_difference(before, now) == expected
