"""What every latency model by genes must satisfy. A new one subclasses `GeneLatencyModelContract`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.latency import GeneLatencyModel, load_latency_model
from nas_core.latency.registry import latency_model
from nas_core.predictor.metrics import mape
from nas_core.space import SearchSpace, get_space

SPACE = get_space("hat_small")


def made_up_ms(space: SearchSpace, rows: np.ndarray) -> np.ndarray:
    """Latencies of a machine on which time grows with sizes and their products."""
    summary = space.encode_rows(rows, "summary").astype(float)
    return 5 + 10 * summary[:, 5] * (1 + summary[:, 4] * summary[:, 6])


class GeneLatencyModelContract:
    """Subclasses name the model, and settings with which it learns 200 architectures in seconds."""

    name: str
    settings: dict[str, Any] = {}  # noqa: RUF012 - never changed

    @classmethod
    def make(cls, space: SearchSpace = SPACE, source: str = "rows") -> GeneLatencyModel:
        model = latency_model(cls.name, "genes")
        return model(space, source, model.config_class(**cls.settings))

    @pytest.fixture(scope="class")
    @classmethod
    def data(cls) -> tuple[np.ndarray, np.ndarray]:
        rows = SPACE.sample_rows(np.random.default_rng(0), 300)
        return rows, made_up_ms(SPACE, rows)

    @pytest.fixture(scope="class")
    @classmethod
    def model(cls, data: tuple[np.ndarray, np.ndarray]) -> GeneLatencyModel:
        return cls.make().fit(data[0][:200], data[1][:200])

    def test_better_than_the_mean(self, model: GeneLatencyModel, data: tuple[np.ndarray, np.ndarray]) -> None:
        rows, latency_ms = data[0][200:], data[1][200:]
        predicted = model.predict_rows(rows)
        assert predicted.shape == (100,) and predicted.dtype == np.float64 and (predicted > 0).all()
        constant = np.full(100, np.exp(np.log(data[1][:200]).mean()))
        assert mape(predicted, latency_ms) < 0.8 * mape(constant, latency_ms)

    def test_architectures_and_rows_give_the_same(
        self, model: GeneLatencyModel, data: tuple[np.ndarray, np.ndarray]
    ) -> None:
        architectures = SPACE.architectures(data[0][:5])
        predicted, std = model.predict_with_std(architectures)
        assert predicted == pytest.approx(model.predict_rows(data[0][:5]))
        assert model.predict(architectures[0]) == pytest.approx(predicted[:1])
        assert (std > 0).all() and np.isfinite(std).all()
        assert 0 < model.interval[0] <= model.interval[1] < np.inf

    def test_a_table_of_averages(self, data: tuple[np.ndarray, np.ndarray]) -> None:
        summary = SPACE.encode_rows(data[0], "summary")
        model = self.make(source="summary").fit(summary, data[1])
        assert model.predict_rows(data[0]) == pytest.approx(model.predict_inputs(summary))

    def test_equal_settings_give_equal_files(
        self, model: GeneLatencyModel, data: tuple[np.ndarray, np.ndarray], tmp_path: Path
    ) -> None:
        repeated = self.make().fit(data[0][:200], data[1][:200])
        for made, file in ((model, "first.json"), (repeated, "second.json")):
            made.save(tmp_path / file)
        assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()

    def test_a_saved_model_is_the_same_model(
        self, model: GeneLatencyModel, data: tuple[np.ndarray, np.ndarray], tmp_path: Path
    ) -> None:
        model.info = {"machine": {"device_name": "abacus"}}
        file = tmp_path / "m.json"
        model.save(file)
        for loaded in (load_latency_model(file), load_latency_model(file, "genes", SPACE)):
            assert isinstance(loaded, GeneLatencyModel) and loaded.space == SPACE
            assert (loaded.interval, loaded.info, loaded.source) == (model.interval, model.info, "rows")
            np.testing.assert_allclose(loaded.predict_rows(data[0]), model.predict_rows(data[0]), rtol=1e-6)

    def test_wrong_inputs_are_one_line(self, model: GeneLatencyModel, data: tuple[np.ndarray, np.ndarray]) -> None:
        rows, latency_ms = data
        cases: list[tuple[type[NasExtError], str, Any]] = [
            (ConfigError, "not fitted", lambda: self.make().predict(SPACE.largest())),
            (NasExtError, "wings", lambda: model.check_settings(["wings"])),
            (NasExtError, "rows, summary", lambda: self.make(source="columns")),
            (DataError, "at least 10", lambda: self.make().fit(rows[:4], latency_ms[:4])),
            (DataError, "measurement 1", lambda: self.make().fit(rows, -latency_ms)),
            (DataError, "shape", lambda: self.make().fit(rows[:, 1:], latency_ms)),
            (NasExtError, "expected 128", lambda: model.predict(get_space("hat_wmt14_en_de").largest())),
        ]
        for error, message, run in cases:
            with pytest.raises(error, match=message) as caught:
                run()
            assert "\n" not in str(caught.value)
