"""Data sets of whole networks, and their splits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nas_core.errors import DataError, UnknownChoiceError
from nas_core.latency.by_graph import NetworkLatencies, last_of_each
from nas_core.latency.by_graph.load import load_networks
from tests.latency.by_graph.networks import data
from tests.latency.by_graph.toy import toy_networks


def test_in_domain_keeps_the_order_and_leaves_nothing_out() -> None:
    train, test = data().in_domain()
    assert train.names.tolist() == ["n0", "n1", "n3", "n4"] and test.names.tolist() == ["n2", "n5"]
    assert [graph.ops[1] for graph in test.graphs] == [2, 5] and test.latency_ms.tolist() == [3.0, 6.0]


def test_out_of_domain_tests_on_one_family_and_learns_from_the_others() -> None:
    train, test = data("abcabc", "000111").out_of_domain("b")
    assert test.names.tolist() == ["n1", "n4"] and train.family_names == ["a", "c"] and len(train) == 4


def test_splits_that_cannot_be_are_refused() -> None:
    with pytest.raises(UnknownChoiceError, match="family of networks 'q'"):
        data().out_of_domain("q")
    with pytest.raises(DataError, match="two families at least"):
        data("aaa", "001").out_of_domain("a")
    with pytest.raises(DataError, match="0 of 6 networks are held out"):
        data(held_out="000000").in_domain()


def test_the_last_tenth_of_each_family_is_held_out() -> None:
    families = ["a", "b"] * 2000
    mask = last_of_each(families)
    assert mask.sum() == 400 and not mask[:3600].any() and mask[3600:].all()
    assert not last_of_each(["a"] * 4).any(), "too few"


def test_a_saved_set_is_the_same_set(tmp_path: Path) -> None:
    before = data()
    before.save(tmp_path / "set.npz")
    after = NetworkLatencies.load(tmp_path / "set.npz")
    assert list(after.graphs) == list(before.graphs)
    for name in ("latency_ms", "families", "names", "held_out"):
        assert np.array_equal(getattr(after, name), getattr(before, name))


@pytest.mark.parametrize("cut", [0, 10, -30])
def test_damaged_files_are_refused(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    data().save(path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DataError, match=r"set\.npz"):
        NetworkLatencies.load(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", ops=np.zeros(3))
    np.save(tmp_path / "array.npz", np.zeros(3))
    for name in ("other.npz", "array.npz.npy", "absent.npz"):
        with pytest.raises(DataError, match=name.replace(".", r"\.")):
            NetworkLatencies.load(tmp_path / name)


def test_costs_below_0_are_refused_before_anything_is_learned(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    toy_networks(12).save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["costs"] = -arrays["costs"]
    np.savez(path, **arrays)
    with pytest.raises(DataError, match="expected none below 0"):
        NetworkLatencies.load(path)


def test_sets_that_do_not_fit_together_are_refused() -> None:
    good = data()
    rows = (good.families, good.names, good.held_out)
    with pytest.raises(DataError, match="one of each per graph"):
        NetworkLatencies(good.graphs, good.latency_ms[:3], *rows)
    with pytest.raises(DataError, match="above 0 ms"):
        NetworkLatencies(good.graphs, good.latency_ms - 1, *rows)
    with pytest.raises(DataError, match="without networks"):
        good.take(np.zeros(6, np.bool_))


def test_of_a_network_that_was_measured_twice_the_first_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    once = data()
    twice = once.take([0, 1, 2, 3, 4, 5, 2, 0])
    both = NetworkLatencies(twice.graphs, twice.latency_ms * 2, twice.families, twice.names, ~twice.held_out)
    both.save(tmp_path / "twice.npz")
    found = load_networks(tmp_path / "twice.npz")
    assert found.names.tolist() == once.names.tolist() and "2 of 8 networks are repeats of earlier ones" in caplog.text
    train, test = found.in_domain()
    assert not set(train.names) & set(test.names)
    once.save(tmp_path / "once.npz")
    caplog.clear()
    assert len(load_networks(tmp_path / "once.npz")) == 6 and not caplog.text
    renamed = NetworkLatencies(once.graphs, once.latency_ms, once.families, np.array(["a"] * 6), once.held_out)
    assert renamed.without_repeats("x") is renamed, "one file at several batches"
