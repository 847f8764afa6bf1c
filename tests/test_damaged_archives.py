"""Archives with flipped bits and missing ends are refused in one line, whatever zipfile, zlib and NumPy say."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from nas_core.errors import DataError, NasExtError, SpaceError
from nas_core.latency import load_latency_model
from nas_core.latency.by_genes.dataset import COLUMNS, read_hat_table
from nas_core.latency.by_graph import NetworkLatencies
from nas_core.space import Choice
from tests.latency.by_graph.networks import data


def altered(content: bytes, count: int) -> Iterator[bytes]:
    """Single bits, mostly of the beginning and the end, where the archive describes itself; cut ends; gaps."""
    stream = random.Random(4)
    for number in range(count):
        changed = bytearray(content)
        place = stream.randrange(len(content))
        if number % 4 == 0:
            place = stream.randrange(80)
        elif number % 4 == 1:
            place = len(content) - 1 - stream.randrange(min(len(content), 200))
        if number % 10 == 9:
            del changed[place : place + stream.randrange(1, 40)]
        else:
            changed[place] ^= 1 << stream.randrange(8)
        yield bytes(changed)


def networks() -> bytes:
    buffer = io.BytesIO()
    made = data()
    parts = {name: getattr(made, name) for name in ("latency_ms", "families", "names", "held_out")}
    graphs = {name: getattr(made.graphs, name) for name in ("ops", "edges", "sizes", "edge_counts", "attributes")}
    np.savez_compressed(buffer, **parts, **graphs, shapes=made.graphs.shapes, static=made.graphs.static)
    return buffer.getvalue()


def table() -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, here=np.ones((12, len(COLUMNS))), here__columns=np.array(COLUMNS))
    return buffer.getvalue()


def model() -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, header=np.array('{"format": "nas-ext/latency-model"}'), weights=np.ones((40, 9)))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "read"), [(networks, NetworkLatencies.load), (table, read_hat_table), (model, load_latency_model)]
)
def test_npz_files(tmp_path: Path, content: Callable[[], bytes], read: Callable[[Path], object]) -> None:
    path, refused = tmp_path / "altered.npz", 0
    for changed in altered(content(), 200):
        path.write_bytes(changed)
        try:
            read(path)
        except NasExtError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 100


def test_checkpoints_of_both_hosts(tmp_path: Path) -> None:
    fairseq, timm = pytest.importorskip("fairseq_ext.host"), pytest.importorskip("timm_ext.host")
    readers = [pytest.importorskip("fairseq_ext.checkpoint").read_state, pytest.importorskip("timm_ext.checkpoint")]
    buffer, path, refused = io.BytesIO(), tmp_path / "altered.pt", 0
    weights = {"net.patch_embed.weight": torch.zeros(30)}
    torch.save({"cfg": {}, "optimizer_history": [], "model": weights, "state_dict": weights}, buffer)
    for changed in altered(buffer.getvalue(), 200):
        path.write_bytes(changed)
        fairseq.HOST.recognises(path)
        timm.HOST.recognises(path)
        for read in (readers[0], readers[1].read_checkpoint):
            try:
                read(path)
            except NasExtError as error:
                refused += 1
                assert "\n" not in str(error)
    assert refused > 100


def test_json_models_with_lists_of_several_lengths(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text('{"format": "nas-ext/latency-model", "arrays": {"a": [[1], [1, 2]]}}')
    with pytest.raises(DataError, match="latency model is damaged"):
        load_latency_model(tmp_path / "m.json")


def test_spaces_that_would_fill_the_memory() -> None:
    with pytest.raises(SpaceError, match="for 100000000000 layers; expected 1 to 1000"):
        Choice.make("size", [1, 2], per="depth", layers=10**11)
    with pytest.raises(SpaceError, match="which is no usable number"):
        Choice.make("size", [1, 10**400])
