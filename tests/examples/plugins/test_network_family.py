"""A third party's network family: plugged in by its entry point it meets the contract, and data sets are made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nas_core.cli import main
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.dataset.folder import load_networks
from nas_core.latency.by_graph.families.registry import chosen_families
from tests.latency.by_graph.families.contract import check_family
from tests.toys import plug_in

pytest.importorskip("onnxruntime", reason="needs onnx and onnxruntime")


@pytest.fixture(autouse=True)
def plugged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = "examples.plugins.network_family:ADAPTER"
    plug_in(tmp_path / "site", monkeypatch, "nas_ext.hosts", "mixers", target)


@pytest.mark.onnx
def test_it_meets_the_contract() -> None:
    (family,) = chosen_families("mixer")
    check_family(family)


@pytest.mark.onnx
def test_a_data_set_is_measured_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "networks"
    command = ["latency", "dataset", "--out", str(out), "--families", "mixer", "--networks", "2"]
    assert main([*command, "--set", "repeats=2", "--set", "warmup=1"]) == 0, capsys.readouterr().err
    data: NetworkLatencies = load_networks(out)
    assert set(data.family_names) == {"mixer"} and len(data) == 2
