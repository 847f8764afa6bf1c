"""Fidelities of graphs: what is taken, and what is refused in one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nas_core.errors import DataError
from nas_core.predictor.fidelity.levels import levels_of


def test_fidelities_are_told_apart() -> None:
    levels = levels_of([108, 4, 4, 4, 4, 4, 108, 108, 108, 108, 36, 36, 36, 36, 36], 15)
    assert levels is not None and levels.values == (4, 36, 108) and levels.counts == [5, 5, 5]
    assert levels.highest.tolist() == [0, 6, 7, 8, 9] and str(levels) == "5 of 4, 5 of 36, 5 of 108"
    assert levels_of([12.5] * 3, 3) is None


@pytest.mark.parametrize(
    ("fidelity", "message"),
    [
        ([1.0, 2.0], r"fidelity has shape \(2,\) for 12 graphs; expected one number for each graph"),
        (5, r"fidelity has shape \(\) for 12 graphs"),
        ([4.0] * 11 + [np.nan], r"fidelity 11 is nan; expected a finite number"),
        ([4.0] * 11 + [np.inf], r"fidelity 11 is inf; expected a finite number"),
        (["long"] * 12, r"fidelity is no row of numbers; expected one for each graph, such as its epochs"),
        ([4] * 8 + [108] * 4, r"the highest fidelity, which is predicted, 108 has 4 graph\(s\); expected 5 or more"),
        ([4] * 2 + [108] * 10, r"fidelity 4 has 2 graph\(s\); expected 5 or more of each: leave it out, or round"),
    ],
)
def test_wrong_fidelities_are_refused(fidelity: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        levels_of(fidelity, 12)
    assert "\n" not in str(caught.value)
