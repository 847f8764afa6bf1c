"""Benchmark published_networks: measured and predicted latencies, and networks outside the training range."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.latency import published_networks
from nas_core.files.reading import read_json
from nas_core.latency.by_graph.counts import CountsModel
from nas_core.latency.machine import describe_machine
from tests.latency.by_graph.toy import toy_networks

pytestmark = [pytest.mark.timm, pytest.mark.onnx]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    fitted = CountsModel().fit(toy_networks(60))
    fitted.info["machine"] = describe_machine("cpu", 1)
    fitted.save(tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


def test_rows_have_measured_and_predicted_latencies(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = model.with_name("r.json")
    options = ["--model", str(model), "--networks", "mobilenetv3_small_050", "--visits", "2", "--batches", "1", "2"]
    assert published_networks.main([*options, "--out", str(out)]) == 0
    result = read_json(out)
    first, two = result["rows"]
    assert min(first["measured_ms"], two["measured_ms"]) > 0 and two["gflops"] == pytest.approx(
        2 * first["gflops"], rel=0.01
    )
    assert "batch" in two["unlike"] and "batch" not in first["unlike"]
    for row in result["rows"]:
        expected = 100 * (row["predicted_ms"] / row["measured_ms"] - 1)
        assert row["error_percent"] == pytest.approx(expected, abs=0.5)
    assert result["unlike"]["networks"] == 2 and result["like_training_networks"] == {}
    assert "mobilenetv3_small_050    batch 2" in capsys.readouterr().out


def test_summary_of_rows() -> None:
    rows = [
        {"measured_ms": 10.0, "predicted_ms": 10.5, "std_ms": 1.0, "members_ms": {"one": 10.0}},
        {"measured_ms": 10.0, "predicted_ms": 8.0, "std_ms": 1.0, "members_ms": {"one": 7.0}},
    ]
    assert published_networks.summary(rows) == {
        "networks": 2,
        "mape_percent": 12.5,
        "median_percent": 12.5,
        "acc10_percent": 50.0,
        "within_spread_percent": 50.0,
        "members": {"one": {"mape_percent": 15.0, "median_percent": 15.0, "acc10_percent": 50.0}},
    }
