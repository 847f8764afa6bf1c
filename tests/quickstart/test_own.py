"""The quickstarts of the core."""

from __future__ import annotations

import json

import pytest

from nas_core.predictor import reader_for
from nas_core.quickstart import QUICKSTARTS
from tests.contracts.quickstart import QuickstartContract


class TestPredictor(QuickstartContract):
    quickstart = QUICKSTARTS.get("predictor")
    small = ("CANDIDATES=50",)
    says = r"Kendall's tau 0\.[4-9]\d on \d+ cells, -?0\.\d\d by parameters alone; see ranking.csv"
    makes = ("predicted.html", "ranking.csv", "model.safetensors")

    def test_its_cells_are_some_hundred_distinct_ones_with_shares_as_targets(self) -> None:
        lines = bytes(self.quickstart.contents()["cells.jsonl"]).decode().splitlines()
        cells = [json.loads(line) for line in lines]
        assert len({cell["architecture"] for cell in cells}) == len(cells) >= 90
        assert all(0 <= cell["target"] <= 1 and cell["parameters"] > 0 for cell in cells)
        assert len({cell["target"] for cell in cells}) > len(cells) / 2
        assert reader_for("nasbench201").read(cells[0]["architecture"])


@pytest.mark.onnx
class TestLatency(QuickstartContract):
    quickstart = QUICKSTARTS.get("latency")
    small = ("NETWORKS=30",)  # ten a family, of which one is held out
    says = r"predicted \d+\.\d ms, give or take \d+\.\d; measured \d+\.\d ms"
    makes = ("out/net.onnx", "out/model.safetensors", "out/networks", "out/log.txt")

    @pytest.fixture(autouse=True)
    def needs(self) -> None:
        pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'nas-ext[onnx]'")
