"""The benchmark of zero-cost proxies: its table, and published values where they are."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.parts import published
from benchmarks.predictor import proxies
from nas_core.proxies import PROXIES
from nas_core.proxies.networks import NasBench201Proxies

needs_values = pytest.mark.skipif(
    published.absent(published.ZERO_COST) is not None, reason=str(published.absent(published.ZERO_COST))
)


def record(cell: tuple[int, ...], draw: int, score: float) -> dict[str, Any]:
    scores = dict.fromkeys(PROXIES.names(), score)
    return {"cell": list(cell), "draw": draw, "images": "random", "scores": scores, "cpu_s": 0.5 + draw}


def test_the_table_compares_with_published_values_and_with_itself() -> None:
    cells = [(0, 0, 0, 0, 0, n) for n in range(4)]
    rows = [
        {"architecture": list(c), "val_accuracy": -n, **dict.fromkeys(PROXIES.names(), n)} for n, c in enumerate(cells)
    ]
    records = [record(cell, 0, n) for n, cell in enumerate(cells)]
    records += [record(cell, 1, score) for cell, score in zip(cells, (0, 1, 3, 2), strict=True)]
    records.append(record((1, 1, 1, 1, 1, 1), 0, 9.0))  # a cell that was not asked for
    (row, *_) = result = proxies.summary(records, rows)
    assert [each["proxy"] for each in result] == PROXIES.names()
    assert (row["cells"], row["draws"]) == (4, 2)
    assert row["tau_of_two_draws"] == pytest.approx(2 / 3, abs=1e-4) and row["tau"] == pytest.approx(5 / 6, abs=1e-4)
    assert row["published_tau_with_accuracy"] == -1 and row["tau_with_accuracy"] == pytest.approx(-5 / 6, abs=1e-4)
    single_draw = proxies.summary([each for each in records if each["draw"] == 0], rows)[0]
    assert single_draw["tau"] == single_draw["tau_of_mean"] == 1 and single_draw["tau_of_two_draws"] is None


@needs_values
def test_counts_and_synflow_are_those_that_were_published() -> None:
    rows = proxies.published_cells(4)
    scores = NasBench201Proxies(["params", "synflow"], batch=2)
    for row in rows:
        result = scores(row["architecture"])
        assert result["params"] == round(1e6 * row["params"])
        assert result["synflow"] == pytest.approx(row["synflow"], abs=0.6)
