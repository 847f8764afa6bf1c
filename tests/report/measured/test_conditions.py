"""How measurements were made, in files of all releases, and how pages tell it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from nas_core.latency import TimingConfig
from nas_core.latency.by_genes import LatencyDataset
from nas_core.latency.protocol import Measurement
from nas_core.report import read_run
from nas_core.report.measured import read_collection
from nas_core.report.run import facts_of, fingerprints_of
from nas_core.search.remeasure import remeasure
from nas_core.space import get_space
from tests.cli.searching import SPACE as SMALL_SPACE
from tests.cli.searching import latency_model
from tests.report.runs import made_run

SPACE = get_space("hat_small")
TIMING = {"warmup": 2, "repeats": 3, "trim": 0.1, "threads": 1, "clock": "device", "device": "cuda"}


def measured_file(path: Path, states: list[dict[str, Any]], **timing: Any) -> LatencyDataset:
    settings = {"workload": {"kind": "test"}, "timing": {**TIMING, **timing}, "seed": 0}
    found = LatencyDataset.begin(path, SPACE, settings, {"device": "cuda", "device_name": "H200"}, 2.0)
    for architecture, state in zip((SPACE.smallest(), SPACE.largest()), states, strict=True):
        found.append(architecture, Measurement({"encoder": 1.0}, 1.0, 0.1, 0.1, 2.0, 0.5, state))
    return found


def test_a_page_says_precision_graphs_and_clocks_once(tmp_path: Path) -> None:
    states = [{"sm_mhz": 1980, "reasons": []}, {"sm_mhz": 1200, "reasons": ["sw_power_cap"]}]
    measured_file(tmp_path / "a.jsonl", states, precision="bf16", cuda_graphs=True)
    found = read_collection(tmp_path / "a.jsonl")
    shown = {name: found.facts[name] for name in ("clock", "precision", "passes")}
    assert shown == {"clock": "device", "precision": "bf16", "passes": "replayed as CUDA graphs"}
    assert found.facts["clocks of the device"] == "processors 1,200 to 1,980 MHz (unknown)"
    (told,) = [warning for warning in found.warnings if "clocks" in warning]
    assert "1 of 2 were made while the device was throttled (sw_power_cap)" in told and "1,200 to 1,980 MHz" in told


def test_a_search_says_its_precision_and_its_device(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", evaluations=4)
    path = folder / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["settings"]["precision"] = "bf16"
    config["notes"] |= {"device": "cuda:1", "device_name": "H200"}
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    run = read_run(folder)
    assert facts_of(run)["precision"] == "bf16" and facts_of(run)["device"] == "cuda:1, H200"
    assert not {"precision", "device", "device_name"} & fingerprints_of(run).keys()


def test_finalists_are_left_unmeasured_without_the_model_s_device(tmp_path: Path, caplog: Any) -> None:
    """The end of a long search is no place for an error."""
    from nas_core.latency import load_latency_model

    model = load_latency_model(latency_model(tmp_path / "latency.json"), "genes", SMALL_SPACE)
    model.info["settings"]["timing"] |= {"device": "cuda:77"}
    assert remeasure([SMALL_SPACE.smallest()], model) == [{}]
    assert "device 'cuda:77' is not usable here" in caplog.text
    model.info["settings"]["timing"] |= {"device": "cpu", "precision": "bf16"}
    (record,) = remeasure([SMALL_SPACE.smallest()], model)
    assert record["precision"] == "bf16" and record["raw_ms"] > 0
    assert json.dumps(record) and TimingConfig(**model.info["settings"]["timing"]).precision == "bf16"
    del model.info["settings"]["timing"]
    assert remeasure([SMALL_SPACE.smallest()], model) == [{}]
    assert "lack or garble 'timing'" in caplog.text
