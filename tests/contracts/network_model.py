"""What every latency model of whole networks must satisfy. A new one subclasses `NetworkModelContract`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.latency import load_latency_model
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.registry import latency_model
from nas_core.predictor.metrics import mape
from tests.latency.by_graph.toy import toy_graph, toy_networks


class NetworkModelContract:
    """Subclasses name the model, and settings with which it learns the toy problem in seconds."""

    name: str
    settings: dict[str, Any] = {}  # noqa: RUF012 - never changed

    @pytest.fixture(scope="class")
    @classmethod
    def data(cls) -> NetworkLatencies:
        return toy_networks()

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, data: NetworkLatencies) -> GraphLatencyModel:
        train, test = data.in_domain()
        return cls.make().fit(train, seed=1).calibrate(test)

    @classmethod
    def make(cls) -> GraphLatencyModel:
        return latency_model(cls.name, "graph")(**cls.settings)

    def test_better_than_the_mean(self, fitted: GraphLatencyModel, data: NetworkLatencies) -> None:
        train, test = data.in_domain()
        predicted = fitted.predict(test.graphs)
        assert predicted.shape == (len(test),) and predicted.dtype == np.float64 and (predicted > 0).all()
        constant = np.full(len(test), np.exp(np.log(train.latency_ms).mean()))
        assert mape(predicted, test.latency_ms) < 0.6 * mape(constant, test.latency_ms)
        assert fitted.info["held_out"]["mape_percent"] == pytest.approx(mape(predicted, test.latency_ms))

    def test_order_and_company_do_not_matter(self, fitted: GraphLatencyModel, data: NetworkLatencies) -> None:
        together = fitted.predict(data.graphs)
        backwards = fitted.predict(data.graphs[::-1])[::-1]
        alone = [float(fitted.predict([data.graphs[i]])[0]) for i in range(3)]
        assert backwards == pytest.approx(together, rel=1e-4) and alone == pytest.approx(together[:3], rel=1e-4)

    def test_equal_seeds_give_equal_models(self, fitted: GraphLatencyModel, data: NetworkLatencies) -> None:
        repeated = self.make().fit(data.in_domain()[0], seed=1)
        assert repeated.predict(data.graphs).tolist() == fitted.predict(data.graphs).tolist()

    def test_a_saved_model_is_the_same_model(
        self, fitted: GraphLatencyModel, data: NetworkLatencies, tmp_path: Path
    ) -> None:
        fitted.info |= {"runtime": "onnxruntime"}
        fitted.save(tmp_path / "m.safetensors")
        loaded = load_latency_model(tmp_path / "m.safetensors", "graph")
        assert (
            type(loaded) is type(fitted)
            and loaded.info == fitted.info
            and loaded.known_operations == fitted.known_operations
        )
        for first, second in zip(
            fitted.predict_with_std(data.graphs), loaded.predict_with_std(data.graphs), strict=True
        ):
            assert first.tolist() == second.tolist()
        loaded.save(tmp_path / "again.safetensors")
        reloaded = load_latency_model(tmp_path / "again.safetensors", "graph")
        assert reloaded.predict(data.graphs).tolist() == fitted.predict(data.graphs).tolist()

    def test_unseen_operations_are_told(
        self, fitted: GraphLatencyModel, caplog: pytest.LogCaptureFixture, data: NetworkLatencies
    ) -> None:
        fitted.predict(data.graphs)
        assert not caplog.records
        assert fitted.predict([toy_graph(np.random.default_rng(0), (5,))])[0] > 0
        messages = [r.getMessage() for r in caplog.records if "no training network has operations" in r.getMessage()]
        assert [text.count("attention") for text in messages] == ([] if fitted.reads == ("static",) else [1])

    def test_wrong_inputs_are_one_line(self, fitted: GraphLatencyModel, data: NetworkLatencies) -> None:
        bare = Graphs.of([Graph([0, 1], [(0, 1)])] * 12)
        rows = (data.latency_ms[:12], data.families[:12], data.names[:12], data.held_out[:12])
        cases: list[tuple[type[NasExtError], str, Any]] = [
            (ConfigError, "not fitted", lambda: self.make().predict(data.graphs)),
            (ConfigError, "before save", lambda: self.make().save("m.safetensors")),
            (ConfigError, "safetensors", lambda: fitted.save("m.json")),
            (NasExtError, "wings", lambda: latency_model(self.name, "graph")(wings=2)),
            (ConfigError, "seed", lambda: self.make().fit(data, seed=-1)),
            (DataError, "at least 10", lambda: self.make().fit(data.take(np.arange(9)))),
            (GraphError, "graphs have no", lambda: self.make().fit(NetworkLatencies(bare, *rows))),
            (GraphError, "graphs have no", lambda: fitted.predict(bare)),
            (GraphError, "a list of graphs", lambda: fitted.predict(data.graphs[0])),  # type: ignore[arg-type]
        ]
        for error, message, run in cases:
            with pytest.raises(error, match=message) as caught:
                run()
            assert "\n" not in str(caught.value)
        assert fitted.predict([]).shape == (0,)
