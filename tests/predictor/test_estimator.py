"""The predictor as users hold it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nas_core.errors import ConfigError, DataError, UnknownChoiceError
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.predictor import NNFormer, NNFormerPredictor, Trainer, get_recipe, kendall_tau, list_recipes
from nas_core.predictor import checkpoint as checkpoint_module
from nas_core.predictor import trainer as trainer_module
from tests.predictor.graphs import random_graphs, sizes_of_operations

TINY: dict[str, Any] = {"dim": 32, "depth": 2, "epochs": 8, "lr": 1e-3}
SIZES = tuple([5, 6, 7] * 14)


@pytest.fixture(scope="module")
def graphs() -> Graphs:
    return random_graphs(SIZES, seed=1)


@pytest.fixture(scope="module")
def targets(graphs: Graphs) -> np.ndarray:
    return sizes_of_operations(graphs)


@pytest.fixture(scope="module")
def fitted(graphs: Graphs, targets: np.ndarray) -> NNFormerPredictor:
    return NNFormerPredictor("paper", **TINY).fit(graphs, targets)


def test_it_learns(graphs: Graphs, targets: np.ndarray) -> None:
    predictor = NNFormerPredictor("paper", **{**TINY, "epochs": 60}).fit(graphs, targets)
    unseen = random_graphs(tuple([5, 6, 7] * 20), seed=2)
    assert kendall_tau(predictor.predict(unseen), sizes_of_operations(unseen)) > 0.5


def test_equal_seeds_equal_predictions(graphs: Graphs, targets: np.ndarray, fitted: NNFormerPredictor) -> None:
    again = NNFormerPredictor("paper", **TINY).fit(graphs, targets)
    other = NNFormerPredictor("paper", seed=1, **TINY).fit(graphs, targets)
    np.testing.assert_array_equal(again.predict(graphs), fitted.predict(graphs))
    assert not np.allclose(other.predict(graphs), fitted.predict(graphs))


def test_fitting_again_forgets(graphs: Graphs, targets: np.ndarray, fitted: NNFormerPredictor) -> None:
    again = NNFormerPredictor("paper", **TINY).fit(graphs, 1 - targets).fit(graphs, targets)
    np.testing.assert_array_equal(again.predict(graphs), fitted.predict(graphs))


def test_predictions_do_not_depend_on_company(graphs: Graphs, fitted: NNFormerPredictor) -> None:
    together = fitted.predict(graphs)
    assert together.dtype == np.float64 and together.shape == (len(graphs),)
    alone = np.concatenate([fitted.predict([graph]) for graph in graphs])
    np.testing.assert_allclose(alone, together, atol=5e-3)  # bfloat16 products of other shapes
    assert fitted.predict([]).shape == (0,)


def test_saved_and_loaded(tmp_path: Path, graphs: Graphs, targets: np.ndarray) -> None:
    predictor = NNFormerPredictor("paper", members=2, targets="normal", **TINY).fit(graphs, targets)
    predictor.save(tmp_path / "p.safetensors")
    loaded = NNFormerPredictor.load(tmp_path / "p.safetensors")
    for got, expected in zip(loaded.predict_with_spread(graphs), predictor.predict_with_spread(graphs), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert loaded.predict_with_spread(graphs)[1].min() > 0
    assert loaded.recipe == predictor.recipe and loaded.info == predictor.info


def test_with_graph_statistics(tmp_path: Path, graphs: Graphs, targets: np.ndarray) -> None:
    recipe = {**TINY, "statistics": 0.5, "targets": "normal", "unseen": "warn"}
    predictor = NNFormerPredictor("paper", **recipe).fit(graphs, targets)
    others = random_graphs(tuple([5, 6, 7] * 20), seed=2)
    assert kendall_tau(predictor.predict(others), sizes_of_operations(others)) > 0.5
    predictor.save(tmp_path / "p.safetensors")
    loaded = NNFormerPredictor.load(tmp_path / "p.safetensors")
    np.testing.assert_array_equal(loaded.predict(others), predictor.predict(others))
    assert loaded.predict_with_spread(others)[1].max() > 0
    assert np.isfinite(loaded.predict([Graph([0, 9, 4], [(0, 1), (1, 2)])])).all()


@pytest.mark.parametrize("scale", ["normal", "mean", "none"])
def test_scales_return_the_users_units(scale: str, graphs: Graphs, targets: np.ndarray) -> None:
    percent = 90 + 5 * targets
    predicted = NNFormerPredictor("paper", targets=scale, **TINY).fit(graphs, percent).predict(graphs)
    if scale != "none":
        assert predicted.min() > 85 and predicted.max() < 100


class Stop(Exception):
    pass


def test_an_interrupted_fit_goes_on_identically(
    tmp_path: Path, graphs: Graphs, targets: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_module, "EVERY_S", 0.0)
    whole = NNFormerPredictor("paper", members=2, **TINY).fit(graphs, targets).predict(graphs)

    def interrupt(at: int) -> Any:
        def progress(step: int, steps: int, loss: float) -> None:
            assert 0 < step <= steps and np.isfinite(loss)
            if step == at:
                raise Stop

        return progress

    file = tmp_path / "fit"
    for at in (7, 30):  # in the first member, then in the second
        with pytest.raises(Stop):
            NNFormerPredictor("paper", members=2, **TINY).fit(graphs, targets, progress=interrupt(at), checkpoint=file)
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(ConfigError, match="epochs"):
        NNFormerPredictor("paper", members=2, **{**TINY, "epochs": 9}).fit(graphs, targets, checkpoint=file)
    with pytest.raises(ConfigError, match="data"):
        NNFormerPredictor("paper", members=2, **TINY).fit(graphs, targets + 1, checkpoint=file)
    resumed = NNFormerPredictor("paper", members=2, **TINY).fit(graphs, targets, checkpoint=file)
    np.testing.assert_array_equal(resumed.predict(graphs), whole)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("processes", "trees"), [(3, 2), (1, 0), (0, 1)])
def test_statistics_alone(tmp_path: Path, graphs: Graphs, targets: np.ndarray, processes: int, trees: int) -> None:
    predictor = NNFormerPredictor("statistics", processes=processes, trees=trees).fit(graphs, 90 + targets)
    others = random_graphs(tuple([5, 6, 7] * 20), seed=2)
    predicted, spread = predictor.predict_with_spread(others)
    assert kendall_tau(predicted, sizes_of_operations(others)) > 0.5
    assert spread.any() == (processes > 0 and trees > 0)
    predictor.save(tmp_path / "p.safetensors")
    np.testing.assert_array_equal(NNFormerPredictor.load(tmp_path / "p.safetensors").predict(others), predicted)


def test_statistics_of_nothing() -> None:
    for changes in ({"members": 0}, {"statistics": 1.5}, {"processes": 0, "trees": 0}, {"trees": -1}):
        with pytest.raises(ConfigError, match="members"):
            get_recipe("paper").changed(**changes)


def test_a_batch_in_parts_is_one_update(graphs: Graphs, targets: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = get_recipe("paper").changed(
        **{**TINY, "batch_size": 64, "dropout": 0.0, "rank_weight": 0.0, "precision": "fp32"}
    )
    updates = []
    for positions in (10**6, 50):
        monkeypatch.setattr(trainer_module, "PART_POSITIONS", positions)
        monkeypatch.setattr(trainer_module, "PART_GRAPHS", 2)
        torch.manual_seed(0)
        trainer = Trainer(NNFormer(recipe.model), graphs, targets, recipe.train)
        most = max(bucket.parts(len(bucket)) for bucket in trainer.buckets)
        assert most == 1 if positions > 50 else most > 2
        losses = [float(loss) for _, loss in zip(range(3), trainer.steps(), strict=False)]
        updates.append((losses, [x.detach().clone() for x in trainer.model.parameters()]))
    (whole, expected), (parts, got) = updates
    np.testing.assert_allclose(parts, whole, rtol=1e-5)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


def test_training_keeps_no_history(graphs: Graphs, targets: np.ndarray) -> None:
    recipe = get_recipe("paper").changed(**TINY)
    trainer = Trainer(NNFormer(recipe.model), graphs, targets, recipe.train)
    for _ in trainer.steps():
        assert not any(average.requires_grad for average in trainer.averaged)
    assert trainer.averaged and trainer.done == trainer.total


def test_wrong_targets(graphs: Graphs, targets: np.ndarray) -> None:
    predictor = NNFormerPredictor("paper", **TINY)
    for wrong, message in (
        (targets[:-1], "one number per graph"),
        (np.where(np.arange(len(targets)) == 3, np.nan, targets), "target 3 is nan"),
        (["a"] * len(targets), "no row of numbers"),
    ):
        with pytest.raises(DataError, match=message):
            predictor.fit(graphs, wrong)
    with pytest.raises(DataError, match="at least 2"):
        predictor.fit(graphs[:1], targets[:1])
    with pytest.raises(DataError, match="above 0"):
        NNFormerPredictor("latency", epochs=1).fit(graphs, targets - 5)


def test_unseen_operations(graphs: Graphs, fitted: NNFormerPredictor, caplog: pytest.LogCaptureFixture) -> None:
    new = [Graph([0, 9, 4], [(0, 1), (1, 2)])]
    with pytest.raises(GraphError, match="operation 9"):
        fitted.predict(new)
    with pytest.raises(GraphError, match="at most"):
        fitted.predict(random_graphs((40,)))
    lenient = NNFormerPredictor("paper", unseen="warn", **TINY).fit(graphs, sizes_of_operations(graphs))
    assert np.isfinite(lenient.predict(new)).all() and "operation 9" in caplog.text


def test_files_that_are_no_predictor(tmp_path: Path, fitted: NNFormerPredictor) -> None:
    path = tmp_path / "p.safetensors"
    with pytest.raises(DataError, match="not found"):
        NNFormerPredictor.load(path)
    fitted.save(path)
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], content[:20], b"", b"x" * 100):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"safetensors"):
            NNFormerPredictor.load(path)
    path.write_bytes(content.replace(b'\\"version\\": 1', b'\\"version\\": 9'))
    with pytest.raises(DataError, match="version 9"):
        NNFormerPredictor.load(path)
    path.write_bytes(content.replace(b"nn-former", b"nn-farmer"))
    with pytest.raises(DataError, match="nn-farmer"):
        NNFormerPredictor.load(path)
    with pytest.raises(ConfigError, match="safetensors"):
        fitted.save(tmp_path / "p.bin")
    unfitted = NNFormerPredictor("paper")
    with pytest.raises(ConfigError, match="not fitted"):
        unfitted.predict([])
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="not fitted"):
        unfitted.save(path)
    assert path.read_bytes() == content


def test_the_best_recipe_adapts_to_the_number_of_graphs() -> None:
    recipe = get_recipe("best")
    shares = [recipe.adapted(graphs).statistics for graphs in (50, 100, 424, 4236, 400_000)]
    assert shares == sorted(shares, reverse=True) and shares[-1] == 0.3
    assert recipe.adapted(100).train.batch_size == 16 and recipe.adapted(6400).train.batch_size == 100
    paper = get_recipe("paper")
    assert paper.adapted(4236) == paper


def test_recipes() -> None:
    assert {"paper", "latency"} <= set(list_recipes())
    assert get_recipe("paper").changed(dim=64, epochs=3, members=2).model.dim == 64
    with pytest.raises(UnknownChoiceError, match="paper"):
        NNFormerPredictor("papper")
    with pytest.raises(ConfigError, match="widht"):
        NNFormerPredictor("paper", widht=3)
    with pytest.raises(UnknownChoiceError, match="unseen"):
        NNFormerPredictor("paper", unseen="maybe")
