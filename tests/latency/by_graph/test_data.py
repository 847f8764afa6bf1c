"""Data sets of whole networks: splits, files, and quality by family."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nas_core.latency.by_graph.data import FamilyQuality, NetworkLatencies, family_quality
from tests.latency.by_graph.networks import data


def test_in_domain_keeps_the_order_and_leaves_nothing_out() -> None:
    train, test = data().in_domain()
    assert train.names.tolist() == ["n0", "n1", "n3", "n4"] and test.names.tolist() == ["n2", "n5"]
    assert [graph.ops[1] for graph in test.graphs] == [2, 5] and test.latency_ms.tolist() == [3.0, 6.0]


def test_a_saved_set_is_the_same_set(tmp_path: Path) -> None:
    before = data()
    before.save(tmp_path / "set.npz")
    after = NetworkLatencies.load(tmp_path / "set.npz")
    assert list(after.graphs) == list(before.graphs)
    for name in ("latency_ms", "families", "names", "held_out"):
        assert np.array_equal(getattr(after, name), getattr(before, name))


def test_quality_by_family_by_hand() -> None:
    rows = family_quality([1.05, 1.5, 2.0, 4.3], [1.0, 1.0, 2.0, 4.0], ["a", "b", "b", "b"])
    assert list(rows) == ["a", "b", "average", "all"]
    assert rows["a"] == FamilyQuality(1, pytest.approx(5.0), 100.0)
    assert rows["b"] == FamilyQuality(3, pytest.approx(57.5 / 3), pytest.approx(200 / 3))
    assert rows["average"] == FamilyQuality(4, pytest.approx((5 + 57.5 / 3) / 2), pytest.approx((100 + 200 / 3) / 2))
    assert rows["all"] == FamilyQuality(4, pytest.approx(62.5 / 4), 75.0)
