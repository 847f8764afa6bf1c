"""Bad input of every kind: the type of the error, one line, and the value in it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from nas_core.errors import ArchitectureError, ConfigError, DataError, NasExtError, SpaceError, UnknownChoiceError
from nas_core.graph import GraphError
from nas_core.latency import LATENCY_MODELS, TimingConfig, load_latency_model, measure
from nas_core.latency.by_genes.collect import planned_architectures
from nas_core.latency.by_genes.dataset import COLUMNS, LatencyData, LatencyDataset, load_latency_data
from nas_core.latency.by_genes.fit import evaluate, fit
from nas_core.latency.by_genes.linear import LinearModel
from nas_core.latency.by_graph.counts import CountsModel
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.dataset.collect import NetworkSetConfig, collect_networks, planned_networks
from nas_core.latency.by_graph.dataset.folder import NetworkSet, load_networks
from nas_core.latency.by_graph.dataset.runtimes import RUNTIMES, check_runtimes
from nas_core.latency.by_graph.ensemble import EnsembleModel
from nas_core.latency.by_graph.families.registry import chosen_families
from nas_core.latency.by_graph.predict import predict_networks, read_module
from nas_core.latency.by_graph.published.collect import collect_published, read_published
from nas_core.latency.registry import latency_model, parsed_model_settings
from nas_core.models.workload import OnePassWorkload
from nas_core.predictor.artifact import write_artifact
from nas_core.space import Choice, SearchSpace, get_space
from tests.latency.by_graph.dataset.tiny import ONE, TIMING
from tests.latency.by_graph.networks import data
from tests.latency.by_graph.published.tiny import SOURCE
from tests.latency.by_graph.toy import toy_networks

SPACE, WMT = get_space("hat_small"), get_space("hat_wmt14_en_de")
TINY = SearchSpace("tiny", [Choice.make("size", [1, 2, 3])])
ROWS = SPACE.sample_rows(np.random.default_rng(0), 60)
MS = np.linspace(1, 2, 60)
HEADER = '{"format": "nas-ext/network-latencies", "version": 1'
JSONL = "dataset.jsonl"
TABLE = "device,model,img_size,batch_size,step_ms,param_count_m,gmacs,macts"
"""Columns of a table of published latencies."""


def check(call: Callable[[], object], error: type[NasExtError], value: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert value in str(caught.value) and "\n" not in str(caught.value)


def spoilt(value: float) -> np.ndarray:
    return np.where(np.arange(60) == 6, value, MS)


def measurements(space: SearchSpace = SPACE, count: int = 12, source: str = "rows") -> LatencyData:
    rows = space.sample_rows(np.random.default_rng(0), count)
    inputs = rows if source == "rows" else space.encode_rows(rows, "summary")
    return LatencyData(space, source, inputs, np.linspace(1, 2, count))


class Fixed:
    """A workload that cannot be converted."""

    modules = ()
    components = {"all": lambda: None}  # noqa: RUF012


class Odd(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("first line\nsecond line")


def training() -> OnePassWorkload:
    workload = OnePassWorkload(nn.Sequential(nn.Linear(1, 1), nn.Dropout()), [torch.ones(1)])
    workload.modules[0][1].train()  # type: ignore[index]  # a submodule is enough
    return workload


CALLS: list[tuple[Callable[[], object], type[NasExtError], str]] = [
    (lambda: TimingConfig(repeats=0), ConfigError, "repeats is 0"),
    (lambda: TimingConfig(trim=0.5), ConfigError, "trim is 0.5"),
    (lambda: TimingConfig(device="abacus"), ConfigError, "device 'abacus'"),
    (lambda: TimingConfig(clock="sundial"), UnknownChoiceError, "sundial"),
    (lambda: TimingConfig(precision="fp8"), UnknownChoiceError, "fp8"),
    (lambda: TimingConfig(clock="cpu", threads=2), ConfigError, "2 threads"),
    (lambda: TimingConfig(clock="cpu", device="cuda"), ConfigError, "on cuda"),
    (lambda: TimingConfig(clock="device"), ConfigError, "clock device"),
    (lambda: TimingConfig(precision="tf32"), ConfigError, "tf32"),
    (lambda: measure(Fixed(), Fixed(), TimingConfig(precision="bf16")), ConfigError, "bfloat16"),
    (lambda: measure(Fixed(), training(), TimingConfig()), ConfigError, "Dropout"),
    (lambda: latency_model("linera", "genes"), UnknownChoiceError, "'linera'"),
    (lambda: latency_model("counts", "genes"), ConfigError, "'counts' is for 'nas-ext latency train'"),
    (lambda: latency_model("linear", "graph"), ConfigError, "'linear' is for 'nas-ext latency fit'"),
    (lambda: LATENCY_MODELS.register("counts", type("Other", (CountsModel,), {})), ConfigError, "'counts'"),
    (lambda: parsed_model_settings("linear", ["rounds=1"]), UnknownChoiceError, "rounds"),
    (lambda: parsed_model_settings("counts", ["shrinkage"]), ConfigError, "'shrinkage'"),
    (lambda: EnsembleModel(epochs=-1), ConfigError, "epochs of the ensemble is -1"),
    (lambda: planned_architectures(TINY, 4, 0), ConfigError, "samples is 4"),
    (lambda: planned_architectures(TINY, 0, 0), ConfigError, "samples is 0"),
    (lambda: LinearModel(SPACE).fit(ROWS[:4], MS[:4]), DataError, "got 4 measurements"),
    (lambda: LinearModel(SPACE).fit(ROWS, spoilt(np.nan)), DataError, "measurement 7 is nan"),
    (lambda: LinearModel(SPACE).fit(ROWS[:, 1:], MS), DataError, str(ROWS[:, 1:].shape)),
    (lambda: LinearModel(SPACE).fit(ROWS, MS).predict(WMT.largest()), ArchitectureError, "128"),
    (lambda: fit(measurements(), lambda: LinearModel(SPACE)), DataError, "got 12 measurements"),
    (lambda: fit(measurements(), lambda: LinearModel(SPACE), holdout=1.5), ConfigError, "holdout is 1.5"),
    (lambda: evaluate(LinearModel(SPACE).fit(ROWS, MS), measurements(WMT)), SpaceError, "'hat_wmt14_en_de'"),
    (lambda: evaluate(LinearModel(SPACE).fit(ROWS, MS), measurements(source="summary")), DataError, "averages"),
    (lambda: data(held_out="000000").in_domain(), DataError, "0 of 6"),
    (lambda: data().take(np.zeros(6, np.bool_)), DataError, "no networks"),
    (lambda: planned_networks([ONE], 0, 0), ConfigError, "count is 0"),
    (lambda: NetworkSetConfig(visits=0), ConfigError, "visits is 0"),
    (lambda: check_runtimes(("onxruntime",), TIMING), UnknownChoiceError, "onxruntime"),
    (lambda: check_runtimes(RUNTIMES, TimingConfig(precision="bf16")), ConfigError, "bf16"),
    (lambda: chosen_families("vgh"), UnknownChoiceError, "'vgh'"),
]


@pytest.mark.parametrize(("call", "error", "value"), CALLS, ids=[value for _, _, value in CALLS])
def test_calls(call: Callable[[], object], error: type[NasExtError], value: str) -> None:
    check(call, error, value)


HAT = "\n".join([",".join(COLUMNS), ",".join(["1"] * len(COLUMNS))])
DATASET = '{"format": "nas-ext/latency-data", "version": 1'
TEXTS: list[tuple[Callable[[Path], object], str, str, str]] = [
    (load_latency_data, "lat.jsonl", "", "is empty"),
    (load_latency_data, "lat.jsonl", '{"format": "other"}\n', "'other'"),
    (load_latency_data, "lat.jsonl", '{"format": "nas-ext/latency-data", "version": 9}\n', "'nas-ext/latency-data' 9"),
    (load_latency_data, "lat.jsonl", DATASET + "}\n", "'space'"),
    (load_latency_data, "lat.jsonl", "not json\n", "line 1"),
    (load_latency_data, "lat.txt", "", "lat.txt"),
    (load_latency_data, "none.jsonl/x.jsonl", "", "not found"),
    (load_latency_data, "t.csv", HAT.replace("latency_mean_decoder", "latency"), "'latency_mean_decoder'"),
    (load_latency_data, "t.csv", HAT.replace("\n1", "\nwide"), "'wide'"),
    (load_latency_data, "t.csv", "", "t.csv"),
    (load_latency_model, "model.json", "[]", "is not a latency model"),
    (load_latency_model, "model.json", '{"format": "other"}', "is not a latency model"),
    (load_latency_model, "model.json", '{"format": "nas-ext/latency-model", "version": 99}', "99"),
    (load_latency_model, "model.safetensors", "hello", "not a complete safetensors"),
    (NetworkLatencies.load, "set.npz", "PK nonsense", "set.npz"),
    (lambda path: load_networks(path.parent), "other.txt", "", "holds no networks"),
    (lambda path: NetworkSet.read(path.parent), JSONL, "", "is empty"),
    (lambda path: NetworkSet.read(path.parent), JSONL, '{"format": "nas-ext/latency-data"}\n', "nas-ext/latency-data"),
    (
        lambda path: NetworkSet.read(path.parent),
        JSONL,
        HEADER.replace("1", "99") + "}\n",
        "'nas-ext/network-latencies' 99",
    ),
    (lambda path: NetworkSet.read(path.parent), JSONL, HEADER + ', "settings": {}, "machine": {}}\n', "'reference_ms'"),
    (read_published, "t.csv", "", "t.csv"),
    (read_published, "t.csv", "model,img_size,batch_size\nnet,224,1\n", "step_ms or infer_step_time"),
    (read_published, "t.csv", TABLE, "no measurement"),
    (read_published, "t.csv", TABLE + "\ni7,net,224,1,fast,1,1,1", "line 2: step_ms is 'fast'"),
    (read_published, "t.csv", TABLE + "\ni7,net,224,0,1,1,1,1", "batch_size is '0'"),
    (read_published, "t.csv", TABLE + "\ni7,net,22.5,1,1,1,1,1", "img_size is '22.5'"),
    (read_published, "t.csv", TABLE + "\ni7,net,224,1,1,many,1,1", "param_count_m is 'many'"),
    (read_published, "t.csv", TABLE + "\ni7,net,224", "batch_size is ''"),
    (read_published, "t.csv", TABLE + "\ni7,net,224,1,1,1,1,1\ni7,net,224,1,2,1,1,1", "line 3: network net-224-b1"),
]


@pytest.mark.parametrize(("read", "name", "content", "value"), TEXTS)
def test_files(read: Callable[[Path], object], name: str, content: str, value: str, tmp_path: Path) -> None:
    if value != "not found":
        (tmp_path / name).write_text(content)
    check(lambda: read(tmp_path / name), DataError, value)


@pytest.mark.parametrize("value", [0, -1, True, "2", float("nan"), None])
def test_times_in_journals(value: object, tmp_path: Path) -> None:
    genes, networks = tmp_path / "lat.jsonl", tmp_path / JSONL
    LatencyDataset.create(genes, SPACE, {}, {}, 1.0)
    check(lambda: load_latency_data(genes), DataError, "no measurement yet")
    genes.write_text(genes.read_text() + json.dumps({"reference_ms": 1.0, "latency_ms": value, "genes": {"a": 1}}))
    check(lambda: LatencyDataset.read(genes), DataError, "line 2")
    NetworkSet.create(tmp_path, {}, {}, {"torch": 1.0})
    row = {"name": "a", "family": "f", "settings": {}, "measured": {"torch": {"corrected_ms": value}}}
    networks.write_text(networks.read_text() + json.dumps(row))
    check(lambda: NetworkSet.read(tmp_path), DataError, "line 2")


def test_runtimes_of_a_folder(tmp_path: Path) -> None:
    dataset = NetworkSet.create(tmp_path, {}, {}, {"torch": 1.0})
    check(lambda: load_networks(tmp_path, "tensorrt"), ConfigError, "'tensorrt'")
    dataset.append({"name": "a", "family": "f", "settings": {}, "error": "broken"})
    check(lambda: load_networks(tmp_path, "torch"), DataError, "no measured network among 1")
    (tmp_path / "file").write_text("")
    check(lambda: collect_networks(tmp_path / "file" / "set", [ONE], 1, TIMING), NasExtError, "file")


def test_models(tmp_path: Path) -> None:
    genes, graph, other = tmp_path / "m.json", tmp_path / "m.safetensors", tmp_path / "o.safetensors"
    LinearModel(SPACE).fit(ROWS, MS).save(genes)
    CountsModel().fit(toy_networks(12)).save(graph)
    check(lambda: load_latency_model(graph, "genes"), DataError, "'counts', which predicts networks")
    check(lambda: load_latency_model(genes, "graph"), DataError, "'linear', which predicts architectures")
    check(lambda: load_latency_model(tmp_path / "absent.json", "genes"), DataError, "absent.json")
    check(lambda: load_latency_model(genes, "genes", WMT), SpaceError, "'hat_wmt14_en_de'")
    genes.write_text(json.dumps({**json.loads(genes.read_text()), "interval": None}))
    check(lambda: load_latency_model(genes), DataError, "damaged")
    for header, value in (
        ({"model": "magic"}, "'magic'"),
        ({"model": "counts", "settings": {"wings": 2}}, "wings"),
        ({}, "'None'"),
    ):
        write_artifact(other, "network-latency", header, {})
        check(lambda: load_latency_model(other, "graph"), DataError, value)


@pytest.mark.onnx
def test_networks(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    check(lambda: read_module(Odd(), torch.zeros(1)), GraphError, "Odd (RuntimeError: first line)")
    check(lambda: read_module(nn.Conv2d(3, 4, 1), torch.zeros(1, 5, 8, 8)), GraphError, "Conv2d")
    check(lambda: predict_networks([b""], tmp_path / "absent.safetensors"), DataError, "absent.safetensors")


def test_tables(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join([TABLE, "i7,net,224,1,2,1,1,1", "gpu,net,224,1,1,1,1,1"]))
    table = read_published(path)
    check(lambda: collect_published(tmp_path / "set", table, SOURCE, "i8"), UnknownChoiceError, "'i8'")
    check(lambda: collect_published(tmp_path / "set", table, SOURCE), ConfigError, "i7, gpu")
    check(lambda: collect_published(tmp_path / "set", table, SOURCE, "i7", 2), ConfigError, "has 1 networks of i7")
    for content in (b"\x1f\x8b\x00broken", b"\xff\xfe\x00", gzip.compress(b"x" * 100)[:-9]):
        path.write_bytes(content)
        check(lambda: read_published(path), DataError, "t.csv")
    table = tmp_path / "table.csv"
    table.write_text(HAT)
    check(lambda: load_latency_data(table, TINY), SpaceError, "'tiny'")


def test_network_data(tmp_path: Path) -> None:
    good, path = data(), tmp_path / "set.npz"
    rows = (good.families, good.names, good.held_out)
    check(lambda: NetworkLatencies(good.graphs, good.latency_ms[:3], *rows), DataError, "6 graphs")
    check(lambda: NetworkLatencies(good.graphs, good.latency_ms - 1, *rows), DataError, "expected ms above 0")
    toy_networks(12).save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    for changes, value in (
        ({"costs": -arrays["costs"]}, "below 0"),
        ({"ops": np.zeros(3)}, "ops have type"),
    ):
        np.savez(path, **{**arrays, **changes})
        check(lambda: NetworkLatencies.load(path), DataError, value)
