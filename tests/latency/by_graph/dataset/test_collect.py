"""Small data sets: planned, measured, killed and continued."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.errors import ConfigError, NasExtError
from nas_core.latency import TimingConfig
from nas_core.latency.by_graph.dataset.collect import collect_networks, planned_networks
from nas_core.latency.by_graph.dataset.folder import NetworkSet
from nas_core.latency.by_graph.families.family import Family
from tests.latency.by_graph.dataset import tiny
from tests.latency.by_graph.dataset.tiny import BROKEN, CONFIG, ONE, TIMING, TWO

pytestmark = pytest.mark.onnx


def collect(
    path: Path, count: int = 6, families: Any = (ONE, TWO), timing: TimingConfig = TIMING, **config: Any
) -> Any:
    return collect_networks(path, families, count, timing, replace(CONFIG, **config), progress=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> NetworkSet:
    return collect(tmp_path_factory.mktemp("made") / "set")  # type: ignore[no-any-return]


def test_rows_and_files(made: NetworkSet) -> None:
    assert [row["name"] for row in made.rows] == [f"{f}_{n:04d}" for n in range(3) for f in ("one", "two")]
    read = NetworkSet.read(made.path)
    assert read == made and read.machine["onnxruntime"] and read.settings["timing"]["repeats"] == 2
    for row in read.rows:
        assert "error" not in row and made.onnx_path(row["name"]).stat().st_size < 3000
        assert row["flops_g"] > 0 and row["params_m"] > 0 and row["seconds"] > 0 and not row["unknown"]
        for runtime in ("onnxruntime", "torch"):
            times = row["measured"][runtime]
            assert times["corrected_ms"] == pytest.approx(times["relative"] * made.reference_ms[runtime])
            assert len(times["visits"]) == 2 and np.median(times["visits"]) == times["relative"]
            assert times["raw_ms"] > 0 and times["std_ms"] >= 0 and times["mad_ms"] >= 0


def test_a_killed_run_goes_on_with_what_is_missing(made: NetworkSet, tmp_path: Path) -> None:
    def killed(settings: Any) -> Any:
        if settings == made.rows[3]["settings"]:
            raise KeyboardInterrupt
        return tiny.build(settings)

    path = tmp_path / "set"
    with pytest.raises(KeyboardInterrupt):
        collect(path, families=[ONE, Family("two", "", tiny.sample, killed)])
    journal = path / "dataset.jsonl"
    before = journal.read_bytes()
    journal.write_bytes(before + b'{"name": "two_00')
    (path / "onnx" / "two_0001.onnx").write_bytes(b"half")
    built = []

    def counted(settings: Any) -> Any:
        built.append(settings)
        return tiny.build(settings)

    families = [Family("one", "", tiny.sample, counted), Family("two", "", tiny.sample, counted)]
    networks = collect(path, families=families)
    assert journal.read_bytes().startswith(before) and len(before.splitlines()) == 3
    assert len(built) == 4, "what was measured together with the one that was killed, and what comes after it"
    assert [(row["name"], row["settings"]) for row in networks.rows] == [(r["name"], r["settings"]) for r in made.rows]
    assert (path / "onnx" / "two_0001.onnx").read_bytes() == made.onnx_path("two_0001").read_bytes()
    full = journal.read_bytes()
    collect(path, families=families)
    assert journal.read_bytes() == full and len(built) == 4, "nothing was missing"
    assert len(collect(path, 8, families).rows) == 8 and len(built) == 6


def test_broken_networks_are_recorded_and_skipped(tmp_path: Path) -> None:
    networks = collect(tmp_path / "set", 5, [*BROKEN, ONE])
    errors = {row["family"]: row.get("error") for row in networks.rows}
    assert errors["one"] is None
    assert errors["failing"].startswith("ValueError: no network of width ") and "\n" not in errors["failing"]
    assert errors["infinite"] == "the network's output has NaN or infinite values" and "eigvals" in errors["unknown"]
    assert sorted(path.stem for path in (tmp_path / "set" / "onnx").iterdir()) == ["one_0000"]
    before = (tmp_path / "set" / "dataset.jsonl").read_bytes()
    collect(tmp_path / "set", 5, [*BROKEN, ONE])
    assert (tmp_path / "set" / "dataset.jsonl").read_bytes() == before, "they are not tried again"


def test_short_passes_are_timed_together(made: NetworkSet, tmp_path: Path) -> None:
    networks = collect(tmp_path / "set", 1, min_ms=2.0)
    for runtime, times in networks.rows[0]["measured"].items():
        single = made.rows[0]["measured"][runtime]
        assert times["at_a_time"] > 5 and single["at_a_time"] == 1
        assert times["raw_ms"] < 2 * single["raw_ms"] and times["corrected_ms"] < 0.5, "of one pass, not of all"


def test_slow_networks_are_skipped(tmp_path: Path) -> None:
    networks = collect(tmp_path / "set", 2, max_ms=1e-4)
    assert all("more than" in row["error"] and "ms" in row["error"] for row in networks.rows)


def test_a_run_in_which_nothing_works_ends(tmp_path: Path) -> None:
    with pytest.raises(NasExtError, match=r"the last 30 networks were skipped.*no network of width"):
        collect(tmp_path / "set", 40, [BROKEN[0]])


def test_other_settings_or_another_machine_are_rejected(made: NetworkSet, tmp_path: Path) -> None:
    for message, changes in [
        ("seed = 0, now it is 1", {"seed": 1}),
        ("timing.repeats = 2, now it is 3", {"timing": TimingConfig(repeats=3, warmup=0)}),
        (r"families = \['one', 'two'\]", {"families": [ONE]}),
        ("runtimes", {"runtimes": ("torch",)}),
        ("visits = 2, now it is 3", {"visits": 3}),
    ]:
        with pytest.raises(ConfigError, match=message):
            collect(made.path, **changes)
    lines = (made.path / "dataset.jsonl").read_text().splitlines(keepends=True)
    for number, key, value, message in [
        (0, "machine", {**made.machine, "cpu": "another"}, "machine cpu = 'another', now it is"),
    ]:
        changed = [json.loads(line) for line in lines]
        changed[number][key] = value
        (tmp_path / "dataset.jsonl").write_text("".join(json.dumps(line) + "\n" for line in changed))
        with pytest.raises(ConfigError, match=message):
            collect(tmp_path)


def test_plans_alternate_and_begin_alike() -> None:
    long, short = (planned_networks([ONE, TWO], count, seed=3) for count in (40, 5))
    assert [network.name for network in short] == ["one_0000", "two_0000", "one_0001", "two_0001", "one_0002"]
    assert long[:5] == short
    assert len({str(network.settings) for network in long if network.family is ONE}) == 20
    assert planned_networks([ONE, TWO], 40, seed=4) != long
    alone = planned_networks([TWO], 20, seed=3)
    assert alone == [network for network in long if network.family is TWO], "whatever the other families are"
    three = Family("three", "", lambda rng: {"width": int(rng.integers(3))}, tiny.build)
    assert len(planned_networks([three], 3, seed=0)) == 3
    with pytest.raises(ConfigError, match="'three' gave no new network in 50 draws after 3"):
        planned_networks([three], 4, seed=0)


def test_batches_are_drawn() -> None:
    rigid = Family("rigid", "", TWO.sample, tiny.build, batched=False)
    planned = planned_networks([ONE, rigid], 200, seed=3, max_batch=8)
    assert {network.settings["batch"] for network in planned if network.family is ONE} == set(range(1, 9))
    assert not any("batch" in network.settings for network in planned if network.family is rigid)
    first = planned[0]
    assert [x.shape[0] for x in first.family.network(first.settings)[1]] == [first.settings["batch"]]
    assert "batch" not in planned_networks([ONE], 1, seed=3)[0].settings
