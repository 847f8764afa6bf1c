"""Learning from trainings of several lengths: what it brings, what each model is fitted to, and its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nas_core.errors import DataError
from nas_core.graph import Graph, GraphError, Graphs, with_static
from nas_core.predictor import kendall_tau
from nas_core.predictor.artifact import read_artifact, write_artifact
from tests.predictor.fidelity.ridge import Ridge
from tests.predictor.graphs import random_graphs


def accuracies(graphs: Graphs) -> np.ndarray:
    """What long trainings give: operations of four kinds count."""
    counts = np.stack([np.bincount(graph.ops, minlength=5) for graph in graphs])
    return np.asarray(0.5 + counts @ np.array([0.0, 0.02, 0.05, -0.03, 0.01]))


@pytest.fixture(scope="module")
def graphs() -> Graphs:
    return random_graphs((4, 6, 8) * 40, seed=3)


@pytest.fixture(autouse=True)
def _no_fits() -> None:
    Ridge.fits.clear()


def short(graphs: Graphs) -> np.ndarray:
    """What short trainings give: another scale, and noise."""
    return accuracies(graphs) ** 3 + 0.005 * np.random.default_rng(1).standard_normal(len(graphs))


def test_many_short_trainings_help_few_long_ones(graphs: Graphs) -> None:
    others = random_graphs((4, 6, 8) * 40, seed=4)
    wanted, rows = accuracies(others), np.r_[10:120, 0:10]
    taus = []
    for seed in range(6):
        long = accuracies(graphs[:10]) + 0.02 * np.random.default_rng(seed).standard_normal(10)
        alone = Ridge().fit(graphs[:10], long)
        values = np.concatenate([short(graphs[10:]), long])
        both = Ridge().fit(graphs.take(rows), values, fidelity=[4] * 110 + [108] * 10)
        taus.append([kendall_tau(model.predict(others), wanted) for model in (alone, both)])
    without, found = np.mean(taus, 0)
    assert found > without + 0.05 and found > 0.75
    # Predictions are for the longest training, in its units.
    predicted, spread = both.predict_with_spread(others)
    assert np.abs(predicted - wanted).mean() < 0.04 and (spread > 0).all() and both.predict([]).shape == (0,)
    assert both.info["graphs"] == 120 and both.info["fidelity"] == {"values": [4.0, 108.0], "graphs": [110, 10]}
    np.testing.assert_allclose(both.predict(others[:3]), predicted[:3])


def test_inputs_come_from_models_that_did_not_see_the_graph(graphs: Graphs) -> None:
    rows = np.r_[0:100, 0:30]  # 30 of the 100 graphs that were trained shortly were trained for long too
    values = np.concatenate([short(graphs[:100]), accuracies(graphs[:30])])
    Ridge().fit(graphs.take(rows), values, fidelity=[4] * 100 + [108] * 30)
    assert Ridge.fits == [100, 85, 85, 30]  # each of two leaves out 15: no more than a fifth
    Ridge.fits.clear()
    Ridge().fit(graphs.take(rows[:110]), values[:110], fidelity=[4] * 100 + [108] * 10)
    assert Ridge.fits == [100, 90, 10]
    Ridge.fits.clear()
    Ridge().fit(graphs.take(np.r_[0:100, 110:120]), values[:110], fidelity=[4] * 100 + [108] * 10)
    assert Ridge.fits == [100, 10]


def test_three_fidelities_in_any_order(graphs: Graphs) -> None:
    fidelity = np.array([4] * 60 + [36] * 40 + [108] * 20)
    values = np.where(
        fidelity == 4, short(graphs), np.where(fidelity == 36, accuracies(graphs) ** 2, accuracies(graphs))
    )
    first = Ridge().fit(graphs, values, fidelity=fidelity)
    order = np.random.default_rng(0).permutation(120)
    again = Ridge().fit(graphs.take(order), values[order], fidelity=fidelity[order] / 108)
    np.testing.assert_allclose(again.predict(graphs), first.predict(graphs), rtol=1e-6)
    assert kendall_tau(first.predict(graphs), accuracies(graphs)) > 0.8


def test_equal_fidelities_are_none(graphs: Graphs, tmp_path: Path) -> None:
    targets = accuracies(graphs)
    Ridge().fit(graphs, targets).save(tmp_path / "a.safetensors")
    Ridge().fit(graphs, targets, fidelity=np.full(120, 12)).save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_static_features_and_missing_ends(graphs: Graphs) -> None:
    loose = Graphs.of([Graph([1, 2, 1, 3], [(0, 2)]) for _ in range(2)] + [Graph([2, 2, 1, 1], [(0, 2)])] * 8)
    values = np.linspace(0.1, 0.9, 10)
    model = Ridge().fit(with_static(loose, values), values, fidelity=[1] * 5 + [2] * 5)
    assert np.isfinite(model.predict(with_static(loose, values))).all()


def test_operations_of_any_fidelity_are_known(graphs: Graphs) -> None:
    seven = Graph([0, 7, 1], [(0, 1), (1, 2)])
    given = Graphs.of([*graphs[:40], seven])
    values = np.append(accuracies(graphs[:40]), 0.9)
    model = Ridge().fit(given, values, fidelity=[108] * 20 + [4] * 21)
    assert model.known == {0, 1, 2, 3, 4, 7} and np.isfinite(model.predict([seven])).all()
    with pytest.raises(GraphError, match="no training graph has operation 6"):
        model.predict([Graph([0, 6, 1], [(0, 1), (1, 2)])])


def test_a_fit_that_fails_changes_nothing(graphs: Graphs) -> None:
    targets = accuracies(graphs)
    model = Ridge().fit(graphs, targets, fidelity=[4] * 100 + [108] * 20)
    before = model.predict(graphs)
    with pytest.raises(DataError, match="fidelity has shape"):
        model.fit(graphs, targets, fidelity=[1, 2])
    np.testing.assert_array_equal(model.predict(graphs), before)
    alone = Ridge().fit(graphs, targets).predict(graphs)
    np.testing.assert_array_equal(model.fit(graphs, targets).predict(graphs), alone)


def test_progress_counts_all_fits(graphs: Graphs) -> None:
    told: list[tuple[int, int]] = []
    Ridge().fit(
        graphs, accuracies(graphs), fidelity=[4] * 60 + [36] * 40 + [108] * 20,
        progress=lambda step, steps, loss: told.append((step, steps)),
    )  # fmt: skip
    steps = [step for step, _ in told]
    assert steps == sorted(steps) and {most for _, most in told} == {3000} and steps[-1] == 3000


def test_files_hold_the_chain(graphs: Graphs, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    model = Ridge().fit(graphs, accuracies(graphs), fidelity=[4] * 60 + [36] * 40 + [108] * 20)
    model.save(path)
    loaded = Ridge.load(path)
    assert loaded.info == model.info
    np.testing.assert_array_equal(loaded.predict(graphs), model.predict(graphs))
    loaded.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()
    header, tensors = read_artifact(path, "ridge")
    for damage in ({"links": header["fidelity"]["links"][1:]}, {"models": []}, {"links": None}):
        write_artifact(path, "ridge", {**header, "fidelity": {**header["fidelity"], **damage}}, tensors)
        with pytest.raises(DataError, match="damaged") as caught:
            Ridge.load(path)
        assert "\n" not in str(caught.value)
