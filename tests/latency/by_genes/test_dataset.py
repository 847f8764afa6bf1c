import itertools
import json

import numpy as np
import pytest

from nas_core import progress
from nas_core.errors import ConfigError, DataError
from nas_core.latency import TimingConfig
from nas_core.latency.by_genes import (
    LatencyDataset,
    load_latency_data,
    planned_architectures,
    reference_architecture,
)
from nas_core.space import Choice, SearchSpace, get_space
from tests.latency.by_genes.machine import run


def test_plan_is_the_same_list_however_long():
    space = get_space("hat_small")
    long = planned_architectures(space, 40, 7)
    assert long[:2] == [space.smallest(), space.largest()]
    assert planned_architectures(space, 10, 7) == long[:10]
    assert len(set(long)) == 40
    assert planned_architectures(space, 10, 8)[2:] != long[2:10]


def test_too_small_a_space_is_said_and_not_searched_for_ever():
    space = SearchSpace("tiny", [Choice.make("size", [1, 2, 3])])
    assert len(planned_architectures(space, 3, 0)) == 3
    with pytest.raises(ConfigError, match=r"3 architectures\) found 3 different ones, 4 were asked for"):
        planned_architectures(space, 4, 0)


def test_collect_resumes_where_it_stopped(tmp_path, machine):
    path = tmp_path / "lat.jsonl"
    run(path, machine, 5)
    path.write_bytes(path.read_bytes()[:-20])  # killed while writing the fifth
    machine.built.clear()
    dataset = run(path, machine, 8)
    space = get_space("hat_small")
    planned = planned_architectures(space, 8, 4)
    assert machine.built == [reference_architecture(space), *planned[4:]]
    again = LatencyDataset.read(path)
    assert again.architectures() == dataset.architectures() == planned
    assert [record["index"] for record in again.records] == list(range(8))
    machine.built.clear()
    run(path, machine, 8)
    assert machine.built == []


def test_a_long_measurement_reports_without_a_terminal(tmp_path, machine, monkeypatch, capsys):
    monkeypatch.setattr(progress, "clock", itertools.count(0, 8).__next__)
    run(tmp_path / "lat.jsonl", machine, 4, progress=None)
    assert capsys.readouterr().err.splitlines() == ["measuring: 1 of 4 after 8 s, about 24 s left"]


def test_records_hold_parts_spread_and_reference(tmp_path, machine):
    dataset = run(tmp_path / "lat.jsonl", machine, 3)
    largest = dataset.records[1]
    assert (largest["raw_ms"], largest["encoder_ms"], largest["decoder_ms"]) == pytest.approx((4, 1, 3))
    assert {"std_ms", "mad_ms", "reference_ms", "time", "key"} <= set(largest)
    assert dataset.machine["threads"] == 1 and dataset.machine["torch"]


def test_drift_is_divided_out(tmp_path, machine):
    machine.slower = 1.05  # twice as slow after 14 architectures
    dataset = run(tmp_path / "lat.jsonl", machine, 20)
    depth = np.array([len(a.numbers("decoder.ffn_dim")) for a in dataset.architectures()])
    raw = np.array([record["raw_ms"] for record in dataset.records])
    data = dataset.data()
    assert (raw / (1 + depth)).max() > 2 * (raw / (1 + depth)).min()
    per_ms = data.latency_ms / (1 + depth)
    assert per_ms.max() == pytest.approx(per_ms.min(), rel=1e-6)
    assert per_ms[0] == pytest.approx(np.median(raw / (1 + depth)), rel=0.01)  # of the machine's median state
    assert load_latency_data(tmp_path / "lat.jsonl").latency_ms == pytest.approx(data.latency_ms)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"timing": TimingConfig(repeats=3, warmup=0)}, "setting timing.repeats = 2, now it is 3"),
        ({"workload": {"kind": "test", "length": 9}}, "setting workload.length = 3, now it is 9"),
        ({"seed": 5}, "setting seed = 4, now it is 5"),
        ({"space": get_space("hat_wmt14_en_de")}, "another space"),
        ({"timing": TimingConfig(repeats=2, warmup=0, threads=2)}, "threads = 1, now it is 2"),
    ],
)
def test_other_settings_are_refused_and_the_file_kept(tmp_path, machine, changed, message):
    path = tmp_path / "lat.jsonl"
    run(path, machine, 3)
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=message):
        run(path, machine, 5, **changed)
    assert path.read_bytes() == before


def test_another_machine_is_refused(tmp_path, machine):
    path = tmp_path / "lat.jsonl"
    run(path, machine, 3)
    lines = path.read_text().splitlines()
    header = json.loads(lines[0])
    header["machine"]["cpu"] = "abacus"
    path.write_text("\n".join([json.dumps(header), *lines[1:]]) + "\n")
    with pytest.raises(ConfigError, match="machine cpu = 'abacus'"):
        run(path, machine, 5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ('{"format": "other"}\n', "no latency measurements"),
        ('{"format": "nas-ext/latency-data", "version": 9}\n', "version 9"),
        ('{"format": "nas-ext/latency-data", "version": 1}\n', "header"),
        ("not json\n", "not a JSON object"),
    ],
)
def test_files_that_are_something_else(tmp_path, content, message):
    path = tmp_path / "lat.jsonl"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        load_latency_data(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("settings", ["seed"]), ("settings", {"timing": "wall"}), ("machine", "abacus")]
    + [("reference_ms", value) for value in (0, -1, True, "2", float("nan"), float("inf"))],
)
def test_a_garbled_header_is_one_line(tmp_path, name, value):
    path = tmp_path / "lat.jsonl"
    LatencyDataset.begin(path, get_space("hat_small"), {}, {}, 1.0)
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}) + "\n")
    with pytest.raises(DataError, match="header lacks or garbles"):
        LatencyDataset.read(path)


@pytest.mark.parametrize("value", ["NaN", "-1.0", '"fast"', "null"])
def test_spoilt_latency_names_the_line(tmp_path, machine, value):
    path = tmp_path / "lat.jsonl"
    run(path, machine, 3)
    lines = path.read_text().splitlines()
    record = json.loads(lines[2])
    lines[2] = lines[2].replace(f'"latency_ms": {record["latency_ms"]!r}', f'"latency_ms": {value}')
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match="line 3: latency_ms"):
        load_latency_data(path)


def test_missing_file_and_header_only(tmp_path):
    with pytest.raises(DataError, match="not found"):
        load_latency_data(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match=r"expected measurements as \.jsonl"):
        load_latency_data(tmp_path / "lat.txt")
    LatencyDataset.begin(tmp_path / "begun.jsonl", get_space("hat_small"), {}, {}, 1.0)
    with pytest.raises(DataError, match="no measurement yet"):
        load_latency_data(tmp_path / "begun.jsonl")


def test_the_reference_is_the_lower_middle():
    choices = [Choice.make("a", [4, 1, 3, 2]), Choice.make("b", [7, 5]), Choice.make("c", [3, 9, 6])]
    assert dict(reference_architecture(SearchSpace("s", choices))) == {"a": 2, "b": 5, "c": 6}
