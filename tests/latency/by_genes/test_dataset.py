"""Collections of measurements: planned, interrupted, continued, with drift, with repeats, two at once."""

import json

import numpy as np
import pytest

from nas_core.errors import ConfigError
from nas_core.latency import TimingConfig
from nas_core.latency.by_genes.collect import collect, planned_architectures, reference_architecture
from nas_core.latency.by_genes.dataset import LatencyDataset, load_latency_data
from nas_core.space import Choice, SearchSpace, get_space
from tests.latency.by_genes.machine import TIMING, WORKLOAD, run

SPACE = get_space("hat_small")


def test_the_plan_is_the_same_list_however_long():
    long = planned_architectures(SPACE, 40, 7)
    assert long[:2] == [SPACE.smallest(), SPACE.largest()]
    assert planned_architectures(SPACE, 10, 7) == long[:10]
    assert len(set(long)) == 40
    assert planned_architectures(SPACE, 10, 8)[2:] != long[2:10]
    assert len(planned_architectures(SearchSpace("tiny", [Choice.make("size", [1, 2, 3])]), 3, 0)) == 3


def test_the_reference_is_the_lower_middle():
    choices = [Choice.make("a", [4, 1, 3, 2]), Choice.make("b", [7, 5]), Choice.make("c", [3, 9, 6])]
    assert dict(reference_architecture(SearchSpace("s", choices))) == {"a": 2, "b": 5, "c": 6}


def test_collect_resumes_where_it_stopped(tmp_path, machine):
    path = tmp_path / "lat.jsonl"
    run(path, machine, 5)
    path.write_bytes(path.read_bytes()[:-20])  # killed while writing the fifth
    machine.built.clear()
    dataset = run(path, machine, 8)
    planned = planned_architectures(SPACE, 8, 4)
    assert machine.built == [reference_architecture(SPACE), *planned[4:]]
    reloaded = LatencyDataset.read(path)
    assert reloaded.architectures() == dataset.architectures() == planned
    assert [record["index"] for record in reloaded.records] == list(range(8))
    largest = reloaded.records[1]
    assert (largest["raw_ms"], largest["encoder_ms"], largest["decoder_ms"]) == pytest.approx((4, 1, 3))
    assert {"std_ms", "mad_ms", "reference_ms", "time", "key"} <= set(largest)
    assert reloaded.machine["threads"] == 1 and reloaded.machine["torch"]
    machine.built.clear()
    run(path, machine, 8)
    assert machine.built == []


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
        ({}, "machine cpu = 'abacus'"),
    ],
)
def test_other_conditions_are_rejected_and_the_file_kept(tmp_path, machine, changed, message):
    path = tmp_path / "lat.jsonl"
    run(path, machine, 3)
    if not changed:
        header, *lines = path.read_text().splitlines()
        elsewhere = json.loads(header)
        elsewhere["machine"]["cpu"] = "abacus"
        path.write_text("\n".join([json.dumps(elsewhere), *lines]) + "\n")
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=message):
        run(path, machine, 5, **changed)
    assert path.read_bytes() == before


def test_the_second_collection_into_a_file_is_rejected(tmp_path, machine):
    path, build, errors = tmp_path / "lat.jsonl", machine.build, []

    def meanwhile(architecture):
        with pytest.raises(ConfigError) as caught:
            collect(path, SPACE, build, 30, TIMING, WORKLOAD, 4, progress=False)
        errors.append(str(caught.value))
        return build(architecture)

    dataset = collect(path, SPACE, meanwhile, 20, TIMING, WORKLOAD, 4, progress=False)
    assert len(errors) == 21 and f"is measuring into {path}" in errors[0]
    assert dataset.architectures() == planned_architectures(SPACE, 20, 4)
    assert [path.name for path in tmp_path.iterdir()] == ["lat.jsonl"]
    run(path, machine, 22)
