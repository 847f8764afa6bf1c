"""Published latencies as a folder: tables, and folders that are filled, continued, read and learned."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from nas_core.errors import ConfigError
from nas_core.latency.by_graph.counts import CountsModel
from nas_core.latency.by_graph.dataset.folder import NetworkSet, read_dataset
from nas_core.latency.by_graph.published.collect import PublishedNetwork, collect_published, read_published
from nas_core.latency.by_graph.published.export import exporting
from tests.latency.by_graph.published.tiny import SOURCE, build, table

pytestmark = pytest.mark.onnx
ROWS = [f"i7,conv{width},{16 + width % 3},{1 + width % 2},{1 + width / 10},,," for width in range(4, 16)]
BROKEN = ["foreign", "greedy", "lost"]
OF_TIMM = (
    "model,infer_img_size,infer_samples_per_sec,infer_step_time,infer_batch_size,param_count,infer_gmacs,infer_macts\n"
    "resnet18,224,8000.5,127.99,1024,11.69,1.82,2.48\n"
    "resnet18.a1_in1k,288,100.0,2560.0,256,11.69,,\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve networks, of which four were made in a first call, and three that cannot be."""
    path = tmp_path_factory.mktemp("published")
    published = read_published(table(path / "t.csv", *ROWS, *(f"i7,{name},16,1,1,,," for name in BROKEN)))
    collect_published(path / "set", published, SOURCE, count=4, progress=False)
    first = (path / "set" / "dataset.jsonl").read_text()
    assert len(first.splitlines()) == 5
    collect_published(path / "set", published, SOURCE, progress=False)
    assert (path / "set" / "dataset.jsonl").read_text().startswith(first)
    return path


def test_rows(folder: Path) -> None:
    networks = NetworkSet.read(folder / "set")
    assert networks.machine["device_name"] == "i7" and len(networks.rows) == 15
    names = [row["name"] for row in networks.rows]
    assert names != sorted(names, key=lambda name: name[4:]), "a sorted table would hold out the slowest"
    errors = {row["settings"]["model"]: row["error"] for row in networks.rows if "error" in row}
    assert sorted(errors) == BROKEN
    assert errors["lost"] == "model 'lost' does not exist (tiny 1.0)"
    assert errors["greedy"] == "the export takes more memory than 8 GB (tiny 1.0)"
    assert "linalg_eigvals" in errors["foreign"] and "\n" not in errors["foreign"]


def test_what_models_learn(folder: Path) -> None:
    data = read_dataset(folder / "set", "torch")
    assert len(data) == 12 and data.family_names == ["conv"] and len(data.skipped) == 3
    latency = dict(zip(data.names.tolist(), data.latency_ms.tolist(), strict=True))
    assert latency["conv6-16-b1"] == 1.6 and latency["conv5-18-b2"] == 1.5
    batches = data.graphs.static[:, 0].tolist() if data.graphs.static is not None else []
    assert batches == [float(name[-1]) for name in data.names]
    assert (CountsModel().fit(data).predict(data.graphs) > 0).all()


def test_what_does_not_fit_the_folder(folder: Path) -> None:
    published = read_published(folder / "t.csv")
    with pytest.raises(ConfigError, match=r"count is 99, but .* has 15 networks of i7"):
        collect_published(folder / "set", published, SOURCE, count=99)
    fewer = {"i7": published["i7"][1:]}
    with pytest.raises(ConfigError, match="was created with setting table"):
        collect_published(folder / "set", fewer, SOURCE)


def test_limits_of_one_network(tmp_path: Path) -> None:
    item = {"name": "n", "img_size": 16, "batch_size": 1}
    export = exporting(build, str(tmp_path), 1, None, 3)
    assert export({**item, "model": "sleeper"}) == {"family": "sleeper", "error": "the export takes longer than 1 s"}
    patient = exporting(build, str(tmp_path), 60, None, 3)
    assert "nodes, more than 3" in patient({**item, "model": "conv8"})["error"]
    other = patient({**item, "model": "conv8", "params_m": 0.5})
    assert "0.00 M parameters, but 0.5 M were published" in other["error"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("batch", [1, 4])
def test_shapes_that_follow_from_weights(tmp_path: Path, batch: int, capfd: pytest.CaptureFixture[str]) -> None:
    export = exporting(build, str(tmp_path), 60, None, 99)
    result = export({"name": "n", "model": "standardised", "img_size": 16, "batch_size": batch, "params_m": 0.0})
    assert "error" not in result and result["flops_g"] > batch * 2 * 27 * 8 * 14 * 14 / 1e9
    assert "error" in export({"name": "m", "model": "foreign", "img_size": 16, "batch_size": batch})
    assert capfd.readouterr().out == "", "the exporter prints whole graphs"


def test_devices_of_a_table(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "i7,net,224,1,2.5,11.69,1.82,2.48", "gpu,net,224,64,8,11.69,,", "i7,net,96,1,1,,,")
    published = read_published(path)
    assert list(published) == ["i7", "gpu"] and published["gpu"][0].costs == {"params_m": 11.69}
    first, second = published["i7"]
    assert first == PublishedNetwork("net", 224, 1, 2.5, 11.69, 1.82, 2.48)
    assert (first.name, second.name) == ("net-224-b1", "net-96-b1") and second.costs == {}


def test_files_as_timm_publishes_them(tmp_path: Path) -> None:
    path = tmp_path / "benchmark-infer-amp-rtx3090.csv.gz"
    path.write_bytes(gzip.compress(OF_TIMM.encode()))
    first, second = read_published(path)["amp-rtx3090"]
    assert first == PublishedNetwork("resnet18", 224, 1024, 127.99, 11.69, 1.82, 2.48)
    assert second.name == "resnet18.a1_in1k-288-b256"
    assert list(read_published(path, "RTX 3090")) == ["RTX 3090"]
