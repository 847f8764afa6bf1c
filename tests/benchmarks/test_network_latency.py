"""Benchmark network_latency: stored fits, merged tables and interval coverage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.latency import network_latency
from benchmarks.parts.network_fits import interval_coverage, out_of_domain
from nas_core.errors import UnknownChoiceError
from nas_core.files.reading import read_json
from tests.latency.by_graph.networks import data as networks_of
from tests.latency.by_graph.toy import toy_networks


@pytest.fixture
def data(tmp_path: Path) -> Path:
    toy_networks(60).save(tmp_path / "n.npz")
    return tmp_path / "n.npz"


def bench(data: Path, *more: str) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    out = data.with_name("r.json")
    arguments = ["--data", str(data), "--work", str(data.with_name("cells")), "--out", str(out), *more]
    assert network_latency.main(arguments) == 0
    result: dict[str, dict[str, dict[str, dict[str, float]]]] = read_json(out)
    return result


def test_runs_of_different_models_are_merged(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench(data, "--models", "flops")
    capsys.readouterr()
    tables = bench(data, "--models", "counts")["tables"]
    assert list(tables["in_domain"]) == list(tables["out_of_domain"]) == ["flops", "counts"]
    rows = tables["out_of_domain"]["flops"]
    assert rows["conv"]["count"] == 20
    errors = [rows[family]["mape_percent"] for family in ("conv", "product", "mixed")]
    assert rows["average"]["mape_percent"] == pytest.approx(sum(errors) / 3, abs=1e-3)
    inside = tables["in_domain"]
    assert inside["counts"]["all"]["mape_percent"] < 1 < inside["flops"]["all"]["mape_percent"]
    out = capsys.readouterr().out
    assert "flops, in-domain" not in out, "it is not computed again"
    assert "One family left out, Acc(10 %)" in out


def test_an_unseen_family_is_tested_alone() -> None:
    train, test = out_of_domain(networks_of("abcabc", "000111"), "b")
    assert test.names.tolist() == ["n1", "n4"] and train.family_names == ["a", "c"] and len(train) == 4
    with pytest.raises(UnknownChoiceError, match="'q'"):
        out_of_domain(train, "q")


def test_interval_coverage(data: Path) -> None:
    networks = toy_networks(60)
    measured = dict(zip(networks.names.tolist(), networks.latency_ms.tolist(), strict=True))
    ratios_by_split = {"in-domain": [0.9, 0.96, 0.98, 1.0, 1.0, 1.0, 1.02, 1.04, 1.1], "conv": [1.1, 1.2, 1.3, 1.0]}
    records: list[dict[str, Any]] = []
    for split, ratios in ratios_by_split.items():
        names = networks.names[: len(ratios)].tolist()
        predicted = [measured[name] / ratio for name, ratio in zip(names, ratios, strict=True)]
        records.append({"split": split, "names": names, "predicted_ms": predicted})
    assert interval_coverage(records, networks) == {"in-domain": 55.6, "conv": 25.0}
    records[1]["deviation"] = [0.0, 0.2, 0.1, 0.0]
    assert interval_coverage(records, networks)["conv"] == 50.0
    assert interval_coverage(records[1:], networks) == {}
    shares = bench(data, "--models", "ensemble", "--set", "epochs=1", "--families", "conv")
    assert shares["within_spread_percent"]["ensemble"] == {}, "coverage needs in-domain fits"
