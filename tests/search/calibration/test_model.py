"""Calibrations: estimates from few networks, their uncertainty, rejected inputs, and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError
from nas_core.predictor import kendall_tau
from nas_core.search.calibration.files import load_calibration, save_calibration
from nas_core.search.calibration.model import Calibration, calibrated_metrics, larger_is_better, objective_of
from nas_core.space import Choice, SearchSpace, get_space
from tests.search.calibration.toy_tasks import SPACE, drawn, inherited_loss, standalone

OTHERS = drawn(200, seed=9)
TRUE = standalone(OTHERS)
LOSSES = inherited_loss(OTHERS)


def fitted(count: int, seed: int = 0) -> Calibration:
    architectures = drawn(count, seed)
    return Calibration(SPACE, "test_bleu").fit(architectures, inherited_loss(architectures), standalone(architectures))


def error(estimates: np.ndarray) -> float:
    return float(np.abs(estimates - TRUE).mean())


def test_it_is_about_as_good_as_the_best_of_its_parts() -> None:
    mixed, alone = [], []
    for seed in range(8):
        calibration = fitted(8, seed)
        mixed.append(error(calibration.predict(OTHERS, LOSSES)))
        alone.append([error(part) for part in calibration.predict_components(OTHERS, LOSSES).values()])
        assert sum(calibration.shares.values()) == pytest.approx(1)
    assert np.mean(mixed) < 1.05 * np.mean(alone, 0).min()
    assert kendall_tau(fitted(8).predict(OTHERS, LOSSES), TRUE) > kendall_tau(-LOSSES, TRUE)


def test_a_useless_supernet_loses_its_say() -> None:
    architectures = drawn(12)
    chance = np.random.default_rng(3).standard_normal(len(architectures) + len(OTHERS))
    calibration = Calibration(SPACE, "test_bleu").fit(architectures, chance[:12], standalone(architectures))
    assert calibration.shares["inherited"] < 0.2
    assert kendall_tau(calibration.predict(OTHERS, chance[12:]), TRUE) > 0.6


def test_two_thirds_lie_within_one_deviation() -> None:
    within, judged = [], []
    for seed in range(10):
        calibration = fitted(10, seed)
        mean, std = calibration.predict_with_std(OTHERS, LOSSES)
        within.append(np.mean(np.abs(mean - TRUE) <= std))
        if seed < 4:
            judged.append(calibration.quality().within_one)
    assert 0.55 < np.mean(within) < 0.85
    assert 0.55 < np.mean(judged) < 0.8


def test_of_losses_smaller_ones_are_better() -> None:
    architectures = drawn(10)
    up = Calibration(SPACE, "test_bleu").fit(architectures, inherited_loss(architectures), standalone(architectures))
    down = Calibration(SPACE, "valid_loss").fit(
        architectures, inherited_loss(architectures), -standalone(architectures)
    )
    assert down.predict(OTHERS, LOSSES) == pytest.approx(-up.predict(OTHERS, LOSSES))
    assert larger_is_better("newstest.BLEU") and not larger_is_better("val-ppl")
    with pytest.raises(ConfigError, match="unknown whether larger values of metric 'quality'"):
        Calibration(SPACE, "quality")
    assert Calibration(SPACE, "quality", larger=False).larger is False


def test_several_supernets_are_better_than_one() -> None:
    single, together = [], []
    for seed in range(6):
        architectures = drawn(6, seed)
        columns = np.stack([inherited_loss(architectures, 0.4, seed=place) for place in range(4)], axis=1)
        others = np.stack([inherited_loss(OTHERS, 0.4, seed=place) for place in range(4)], axis=1)
        for places, errors in (([0], single), ([0, 1, 2, 3], together)):
            calibration = Calibration(SPACE, "test_bleu").fit(
                architectures, columns[:, places], standalone(architectures)
            )
            errors.append(error(calibration.predict(OTHERS, others[:, places])))
    assert np.mean(together) < np.mean(single)


def test_few_networks() -> None:
    assert np.isfinite(fitted(3).predict_with_std(OTHERS, LOSSES)).all()
    with pytest.raises(DataError, match=r"^got 2 trained networks; a calibration needs at least 3"):
        fitted(2)
    with pytest.raises(ConfigError, match="its errors need at least 4"):
        fitted(3).quality()
    with pytest.raises(ConfigError, match="the calibration is not fitted"):
        Calibration(SPACE, "test_bleu").predict(OTHERS, LOSSES)


def test_what_is_saved_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    calibration = fitted(6)
    save_calibration(calibration, file)
    reloaded = load_calibration(file, SPACE)
    assert np.array_equal(reloaded.predict_with_std(OTHERS, LOSSES), calibration.predict_with_std(OTHERS, LOSSES))
    assert reloaded.quality() == calibration.quality() and reloaded.trained == calibration.trained
    with pytest.raises(ConfigError, match="a calibration for search space 'hat_small'"):
        load_calibration(file, get_space("hat_wmt14_en_de"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(DataError):
        load_calibration(file)
    with pytest.raises(DataError, match="create a calibration with 'nas-ext lab calibrate'"):
        load_calibration(tmp_path / "nothing.safetensors")


def test_genes_that_are_no_sizes_count_too() -> None:
    space = SearchSpace("gates", [Choice.make("skip", [0, 1]), Choice.make("gate", [0, 1, 2])])
    architectures = space.architectures(np.array([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]))
    expected = [20.0 + 3 * one["skip"] for one in architectures]
    calibration = Calibration(space, "test_bleu").fit(architectures, [4.0, 4.1, 4.2, 4.0, 4.1, 4.2], expected)
    low, high = calibration.predict(architectures[:1] + architectures[3:4], [4.0, 4.0])
    assert high > low + 1


def test_the_objective_is_smaller_for_better_networks() -> None:
    architectures = drawn(5)
    up = Calibration(SPACE, "test_bleu").fit(architectures, inherited_loss(architectures), standalone(architectures))
    metrics = calibrated_metrics(up, architectures[0], [{"loss": 3.0}])
    assert objective_of(up) == "-calibrated_test_bleu" and metrics[objective_of(up)] == -metrics["calibrated_test_bleu"]
    assert calibrated_metrics(up, architectures[0], [{"loss": float("nan")}]) == {}


def test_sizes_without_numeric_genes_are_features_of_the_ridge_on_both() -> None:
    space = SearchSpace("operations", [Choice.make("first", ["a", "b", "c"]), Choice.make("second", ["a", "b"])])
    architectures = list(dict.fromkeys(space.architectures(space.sample_rows(np.random.default_rng(0), 40))))
    named = np.array([{"a": 0.0, "b": 1.0, "c": 2.0}[str(network["first"])] for network in architectures])
    metrics = np.random.default_rng(1).standard_normal(len(architectures))
    fitted = Calibration(space, "test_bleu").fit(architectures, metrics, named)
    assert kendall_tau(fitted.predict_components(architectures, metrics)["both"], named) > 0.6
