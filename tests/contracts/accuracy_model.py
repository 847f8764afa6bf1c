"""What every accuracy model must satisfy. A new one subclasses `AccuracyModelContract`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.graph.io_nodes import topological
from nas_core.predictor import ACCURACY_MODELS, AccuracyModel, kendall_tau, load_accuracy_model
from tests.predictor.graphs import random_graphs, sizes_of_operations


class AccuracyModelContract:
    """Subclasses name the model, and settings with which it learns 42 small graphs in seconds."""

    name: str
    settings: dict[str, Any] = {}  # noqa: RUF012 - never changed
    order_matters = False
    """Whether the order of training graphs may change what is learned: batches are drawn from them."""
    has_std = True
    """Whether predictions have a standard deviation."""

    @classmethod
    def make(cls, **more: Any) -> AccuracyModel:
        return ACCURACY_MODELS.get(cls.name)(**{"seed": 1, **cls.settings, **more})

    @pytest.fixture(scope="class")
    @classmethod
    def data(cls) -> tuple[Graphs, np.ndarray]:
        graphs = random_graphs((5, 6, 7) * 14, seed=1)
        return graphs, sizes_of_operations(graphs)

    @pytest.fixture(scope="class")
    @classmethod
    def model(cls, data: tuple[Graphs, np.ndarray]) -> AccuracyModel:
        return cls.make().fit(*data)

    def test_it_orders_graphs_it_has_not_seen(self, model: AccuracyModel) -> None:
        others = random_graphs((5, 6, 7) * 20, seed=2)
        predicted = model.predict(others)
        assert predicted.shape == (60,) and predicted.dtype == np.float64 and np.isfinite(predicted).all()
        assert kendall_tau(predicted, sizes_of_operations(others)) > 0.3
        assert model.predict([]).shape == (0,)

    def test_its_spread_or_that_it_has_none(self, model: AccuracyModel) -> None:
        others = random_graphs((5, 6, 7) * 10, seed=3)
        assert model.has_std == self.make().has_std == self.has_std
        if not self.has_std:
            assert model.predictions(others)[1] is None
            with pytest.raises(ConfigError):
                model.predict_with_std(others)
            return
        predicted, std = model.predict_with_std(others)
        assert predicted.shape == std.shape == (30,) and std.dtype == np.float64 and (std >= 0).all()
        np.testing.assert_array_equal(model.predict(others), predicted)

    def test_company_and_order_of_what_is_asked_do_not_matter(
        self, model: AccuracyModel, data: tuple[Graphs, np.ndarray]
    ) -> None:
        graphs = data[0]
        together = model.predict(graphs)
        np.testing.assert_allclose(model.predict(graphs[::-1])[::-1], together, rtol=1e-4)
        np.testing.assert_allclose([float(model.predict([graphs[i]])[0]) for i in range(3)], together[:3], rtol=1e-4)

    def test_the_order_of_nodes_does_not_matter(self, model: AccuracyModel) -> None:
        stream = np.random.default_rng(0)
        mixed = [graph.permuted(stream.permutation(len(graph))) for graph in random_graphs((6, 7) * 3, seed=4)]
        expected = model.predict(topological(Graphs.of(mixed)))
        np.testing.assert_allclose(model.predict(mixed), expected, rtol=1e-4)

    def test_the_order_of_training_graphs(self, model: AccuracyModel, data: tuple[Graphs, np.ndarray]) -> None:
        graphs, targets = data
        order = np.random.default_rng(0).permutation(len(graphs))
        repeated = self.make().fit(graphs.take(order), targets[order]).predict(graphs)
        if self.order_matters:
            assert kendall_tau(repeated, model.predict(graphs)) > 0.3
        else:
            np.testing.assert_allclose(repeated, model.predict(graphs), rtol=1e-6, atol=1e-8)

    def test_equal_seeds_give_equal_files(
        self, model: AccuracyModel, data: tuple[Graphs, np.ndarray], tmp_path: Path
    ) -> None:
        self.make().fit(data[0], 1 - data[1]).fit(*data).save(tmp_path / "after.safetensors")
        model.save(tmp_path / "m.safetensors")
        full = (tmp_path / "m.safetensors").read_bytes()
        assert (tmp_path / "after.safetensors").read_bytes() == full

    def test_a_saved_model_is_the_same_model(self, data: tuple[Graphs, np.ndarray], tmp_path: Path) -> None:
        model = self.make().fit(*data)
        model.info |= {"reader": "nasbench201"}
        model.save(tmp_path / "m.safetensors")
        for loaded in (load_accuracy_model(tmp_path / "m.safetensors"), type(model).load(tmp_path / "m.safetensors")):
            assert (
                type(loaded) is type(model)
                and loaded.info == model.info
                and loaded.known_operations == model.known_operations
            )
            for first, second in zip(model.predictions(data[0]), loaded.predictions(data[0]), strict=True):
                if first is not None and second is not None:
                    np.testing.assert_allclose(second, first, rtol=1e-6, atol=1e-8)
            loaded.save(tmp_path / "again.safetensors")
            assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "m.safetensors").read_bytes()

    def test_operations_that_no_training_graph_has(
        self, data: tuple[Graphs, np.ndarray], caplog: pytest.LogCaptureFixture
    ) -> None:
        new = [Graph([0, 9, 4], [(0, 1), (1, 2)])]
        model = self.make().fit(*data)
        assert model.unseen_in(Graphs.of(new)) == {9: 0}
        with pytest.raises(GraphError, match="operation 9"):
            model.predict(new)
        model.unseen = "warn"
        assert np.isfinite(model.predict(new)).all() and "operation 9" in caplog.text
        assert np.isfinite(model.predict([Graph([0, 9000, 4], [(0, 1), (1, 2)])])).all()  # whatever its index

    def test_wrong_inputs_are_one_line(
        self, model: AccuracyModel, data: tuple[Graphs, np.ndarray], tmp_path: Path
    ) -> None:
        graphs, targets = data
        model.save(path := tmp_path / "m.safetensors")
        cases: list[tuple[type[NasExtError], str, Any]] = [
            (ConfigError, "not fitted", lambda: self.make().predict(graphs)),
            (ConfigError, "not fitted", lambda: self.make().save(tmp_path / "new.safetensors")),
            (ConfigError, "safetensors", lambda: model.save(tmp_path / "m.json")),
            (NasExtError, "wings", lambda: self.make(wings=2)),
            (ConfigError, "seed", lambda: self.make(seed=-1)),
            (NasExtError, "maybe", lambda: self.make(unseen="maybe")),
            (NasExtError, "maybe", lambda: load_accuracy_model(path, unseen="maybe")),
            (NasExtError, "cuba", lambda: load_accuracy_model(path, device="cuba")),
            (DataError, "at least 2", lambda: self.make().fit(graphs[:1], targets[:1])),
            (DataError, "one number per graph", lambda: self.make().fit(graphs, targets[1:])),
            (DataError, "not found", lambda: load_accuracy_model(tmp_path / "absent.safetensors")),
            (GraphError, "got", lambda: model.predict(graphs[0])),  # type: ignore[arg-type]
        ]
        for error, message, run in cases:
            with pytest.raises(error, match=message) as caught:
                run()
            assert "\n" not in str(caught.value)
