"""A folder of measured networks as a data set."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from nas_core.errors import DataError
from nas_core.graph.onnx.reader import read_onnx
from nas_core.latency.by_graph.dataset import folder as reading
from nas_core.latency.by_graph.dataset.collect import collect_networks
from nas_core.latency.by_graph.dataset.folder import NetworkSet, read_dataset
from tests.latency.by_graph.dataset.tiny import BROKEN, CONFIG, ONE, TIMING, TWO

pytestmark = pytest.mark.onnx


FAMILIES = [ONE, BROKEN[0], TWO]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "set"
    collect_networks(path, FAMILIES, 15, TIMING, CONFIG, progress=False)
    return path


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "set"))


def caches(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.npz"))


def test_networks_in_their_order(folder: Path) -> None:
    data, rows = read_dataset(folder), NetworkSet.read(folder).measured("onnxruntime")
    assert data.names.tolist() == [row["name"] for row in rows] and data.families.tolist() == ["one", "two"] * 5
    assert [name for name, _ in data.skipped] == [f"failing_{n:04d}" for n in range(5)]
    graph = read_onnx(folder / "onnx" / "two_0000.onnx").graph
    np.testing.assert_array_equal(data.graphs[1].ops, graph.ops)
    np.testing.assert_array_equal(data.graphs[1].attributes, graph.attributes)
    state_ms = np.median([row["measured"]["onnxruntime"]["reference_ms"] for row in rows])
    relative = [row["measured"]["onnxruntime"]["relative"] for row in rows]
    np.testing.assert_allclose(data.latency_ms, np.array(relative) * state_ms)
    assert (read_dataset(folder, "torch").latency_ms != data.latency_ms).all()


def test_the_cache_is_used_until_a_row_is_added(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read_dataset(folder)
    read = []
    monkeypatch.setattr(reading, "read_onnx", lambda *args, **kwargs: read.append(args) or read_onnx(*args, **kwargs))
    reloaded = read_dataset(folder)
    assert not read and reloaded.skipped == first.skipped and reloaded.names.tolist() == first.names.tolist()
    np.testing.assert_array_equal(reloaded.graphs.attributes, first.graphs.attributes)
    np.testing.assert_array_equal(reloaded.latency_ms, first.latency_ms)
    collect_networks(folder, FAMILIES, 16, TIMING, CONFIG, progress=False)
    assert len(read_dataset(folder)) == 11 and len(read) == 11
    (cache,) = caches(folder)
    cache.write_bytes(b"damaged")
    assert len(read_dataset(folder)) == 11 and len(read) == 22


def test_a_network_that_cannot_be_read_is_named_and_left_out(folder: Path) -> None:
    (folder / "onnx" / "one_0001.onnx").write_bytes(b"no model")
    data = read_dataset(folder)
    assert "one_0001" not in data.names and "one_0001" in dict(data.skipped) and len(data) == 9
    assert not caches(folder), "the file may come back"
    for path in (folder / "onnx").iterdir():
        path.unlink()
    with pytest.raises(DataError, match="none of the 10 networks"):
        read_dataset(folder)
