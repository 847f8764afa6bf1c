"""Small data sets, made for real, killed and gone on with."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError, NasExtError, UnknownChoiceError
from nas_core.latency import TimingConfig
from nas_core.latency.by_graph.dataset import NetworkSet, collect_networks, measured_again
from nas_core.latency.by_graph.families import Family
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
    found = collect(path, families=families)
    assert journal.read_bytes().startswith(before) and len(before.splitlines()) == 3
    assert len(built) == 4, "what was measured together with the one that was killed, and what comes after it"
    assert [(row["name"], row["settings"]) for row in found.rows] == [(r["name"], r["settings"]) for r in made.rows]
    assert (path / "onnx" / "two_0001.onnx").read_bytes() == made.onnx_path("two_0001").read_bytes()
    full = journal.read_bytes()
    collect(path, families=families)
    assert journal.read_bytes() == full and len(built) == 4, "nothing was missing"
    assert len(collect(path, 8, families).rows) == 8 and len(built) == 6


def test_the_second_collection_into_a_folder_is_refused(tmp_path: Path) -> None:
    path, said = tmp_path / "set", []

    def meanwhile(settings: Any) -> Any:
        for attempt in (lambda: collect(path, 4), lambda: measured_again(path, (ONE, TWO), 1, progress=False)):
            with pytest.raises((ConfigError, DataError)) as caught:
                attempt()
            said.append(str(caught.value))
        return tiny.build(settings)

    families = [Family("one", "", tiny.sample, meanwhile), TWO]
    assert len(collect(path, 6, families).rows) == 6
    assert len(said) == 6 and "is measuring the networks of" in said[0] and "wait for it to end" in said[0]
    assert "is measuring the networks of" in said[-1], "a second measurement would disturb the first one"
    assert sorted(file.name for file in path.iterdir()) == ["dataset.jsonl", "onnx"]
    measured_again(path, (ONE, TWO), 1, progress=False)


def test_broken_networks_are_recorded_and_skipped(tmp_path: Path) -> None:
    found = collect(tmp_path / "set", 5, [*BROKEN, ONE])
    errors = {row["family"]: row.get("error") for row in found.rows}
    assert errors["one"] is None
    assert errors["failing"].startswith("ValueError: no network of width ") and "\n" not in errors["failing"]
    assert errors["infinite"] == "the output is not finite" and "eigvals" in errors["unknown"]
    assert sorted(path.stem for path in (tmp_path / "set" / "onnx").iterdir()) == ["one_0000"]
    before = (tmp_path / "set" / "dataset.jsonl").read_bytes()
    collect(tmp_path / "set", 5, [*BROKEN, ONE])
    assert (tmp_path / "set" / "dataset.jsonl").read_bytes() == before, "they are not tried again"


def test_short_passes_are_timed_together(made: NetworkSet, tmp_path: Path) -> None:
    found = collect(tmp_path / "set", 1, least_ms=2.0)
    for runtime, times in found.rows[0]["measured"].items():
        one = made.rows[0]["measured"][runtime]
        assert times["at_a_time"] > 5 and one["at_a_time"] == 1
        assert times["raw_ms"] < 2 * one["raw_ms"] and times["corrected_ms"] < 0.5, "of one pass, not of all"


def test_giants_are_refused(tmp_path: Path) -> None:
    found = collect(tmp_path / "set", 2, most_ms=1e-4)
    assert all("more than" in row["error"] and "ms" in row["error"] for row in found.rows)


def test_a_machine_on_which_nothing_works_is_told(tmp_path: Path) -> None:
    with pytest.raises(NasExtError, match=r"30 networks one after another were skipped.*no network of width"):
        collect(tmp_path / "set", 40, [BROKEN[0]])


def test_one_runtime(tmp_path: Path) -> None:
    found = collect(tmp_path / "set", 1, runtimes=("torch",))
    assert list(found.rows[0]["measured"]) == ["torch"] and "onnxruntime" not in found.machine


def test_other_settings_or_another_machine_are_refused(made: NetworkSet, tmp_path: Path) -> None:
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
        (1, "settings", {"width": -1}, "another network 'one_0000'"),
    ]:
        changed = [json.loads(line) for line in lines]
        changed[number][key] = value
        (tmp_path / "dataset.jsonl").write_text("".join(json.dumps(line) + "\n" for line in changed))
        with pytest.raises(ConfigError, match=message):
            collect(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"format": "nas-ext/latency-data"}\n', "no latencies of networks"),
        ('{"format": "nas-ext/network-latencies", "version": 99}\n', "version 99"),
        ('{"format": "nas-ext/network-latencies", "version": 1}\n', "'reference_ms'"),
        (
            '{"format": "nas-ext/network-latencies", "version": 1, "reference_ms": {}, "settings": {"timing": 3}}\n',
            "garbles timing",
        ),
        ("no json\n{}\n", "line 1"),
    ],
)
def test_other_files_are_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "dataset.jsonl").write_text(content)
    with pytest.raises(DataError, match=message):
        collect(tmp_path)
    assert (tmp_path / "dataset.jsonl").read_text() == content


def test_damaged_rows_are_refused(made: NetworkSet, tmp_path: Path) -> None:
    header, row = (json.loads(line) for line in (made.path / "dataset.jsonl").read_text().splitlines()[:2])
    absent = "corrected_ms in onnxruntime is None"
    for changes, message in [
        ({"name": 3}, "lacks name"),
        ({"measured": {}}, absent),
        ({"measured": [1.0]}, absent),
        ({"measured": {"onnxruntime": 1.0}}, absent),
    ]:
        (tmp_path / "dataset.jsonl").write_text(f"{json.dumps(header)}\n{json.dumps({**row, **changes})}\n")
        with pytest.raises(DataError, match=f"line 2.*{message}"):
            NetworkSet.read(tmp_path)


def test_wrong_requests(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NasExtError, match="cannot make the folder"):
        collect(tmp_path / "file" / "set")
    with pytest.raises(UnknownChoiceError, match="expected one of onnxruntime, torch"):
        collect(tmp_path / "set", runtimes=("onxruntime",))
    with pytest.raises(ConfigError, match="runtimes are"):
        collect(tmp_path / "set", runtimes=("torch", "torch"))
    with pytest.raises(ConfigError, match="expected at least 1"):
        collect(tmp_path / "set", 0)
    for name in ("most_ms", "visits", "together", "least_ms"):
        with pytest.raises(ConfigError, match=f"{name} is 0"):
            collect(tmp_path / "set", **{name: 0})
    assert not (tmp_path / "set").exists()
