"""A small folder in the layout of the NNLQP release."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import numpy as np
import pytest

from nas_core.errors import DataError
from nas_core.latency.by_graph import read_nnlqp, read_nnlqp_table

PER_FAMILY = 10


def rows(stage: bool) -> list[str]:
    lines = []
    for f, family in enumerate(("alexnet", "resnet18", "vgg16")):
        for i in range(PER_FAMILY):
            path = f"onnx/nnmeter_{family}/nnmeter_{family}_transform_{i:04d}.onnx"
            last = (" test" if i >= PER_FAMILY * 9 // 10 else " train") if stage else ""
            lines.append(f"{f * PER_FAMILY + i + 1:05d} {path} 1 {0.5 + f + i / 10:.5f} {family} 1{last}")
    return lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.graph.onnx.models import onnx, residual

    root = tmp_path_factory.mktemp("unseen_structure")
    for index, line in enumerate(rows(False)):
        path = root / line.split()[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(residual(8 + 2 * index, batch="b" if index % 2 else 1), path)
    (root / "gt.txt").write_text("\n".join(rows(False)) + "\n")
    return root


@pytest.mark.onnx
@pytest.mark.parametrize("features", ["corrected", "released"])
def test_all_networks_are_graphs_with_their_latency(folder: Path, features: str) -> None:
    seen: list[tuple[int, int]] = []
    read = read_nnlqp(folder, features=features, progress=lambda done, of: seen.append((done, of)))
    assert len(read) == 30 and read.family_names == ["alexnet", "resnet18", "vgg16"] and not read.skipped
    assert read.latency_ms[11] == pytest.approx(1.6) and read.names[11].endswith("resnet18_transform_0001.onnx")
    assert {len(graph) for graph in read.graphs} == {9} and len(set(read.graphs)) == 30
    assert read.graphs.static is not None and (read.graphs.static[:, 0] == 1).all()
    assert seen == [(i + 1, 30) for i in range(30)]
    train, test = read.in_domain()
    assert (len(train), len(test)) == (27, 3) and all(name.endswith("_0009.onnx") for name in test.names)
    assert [len(part) for part in read.out_of_domain("vgg16")] == [20, 10]


@pytest.mark.onnx
def test_networks_that_cannot_be_read_are_skipped_and_named(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = tmp_path / "gt.txt"
    (folder / "broken.onnx").write_bytes(b"broken")
    table.write_text("\n".join([*rows(False)[:3], "x absent.onnx 1 2.0 vgg16 1", "y broken.onnx 1 2.0 vgg16 1"]))
    with caplog.at_level(logging.WARNING):
        read = read_nnlqp(folder, table=table)
    assert len(read) == 3 and [path for path, _ in read.skipped] == ["absent.onnx", "broken.onnx"]
    assert "is no ONNX file" in read.skipped[1][1]
    assert [record.getMessage()[:37] for record in caplog.records] == ["2 of 5 networks are skipped; the firs"]
    table.write_text("x absent.onnx 1 2.0 vgg16 1")
    with pytest.raises(DataError, match=r"none of the 1 networks .* file not found"):
        read_nnlqp(folder, table=table)


def test_the_stage_follows_from_the_order(tmp_path: Path) -> None:
    (tmp_path / "gt.txt").write_text("\n".join(rows(False)))
    (tmp_path / "gt_stage.txt").write_text("\n".join(rows(True)))
    plain, staged = (read_nnlqp_table(tmp_path / name) for name in ("gt.txt", "gt_stage.txt"))
    assert plain == staged and sum(row.held_out for row in plain) == 3
    assert plain[9].held_out and plain[9].family == "alexnet" and plain[9].id == "00010"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("1 a.onnx 1 0.5\n", "line 1 is '1 a.onnx 1 0.5'; expected id"),
        ("1 a.onnx 1 0.5 f 1\n2 b.onnx one 0.5 f 1\n", "line 2: batch 'one'"),
        ("1 a.onnx 1 nan f 1\n", "expected numbers above 0"),
        ("1 a.onnx 1 -2 f 1\n", "expected numbers above 0"),
        ("1 a.onnx 0 2 f 1\n", "expected numbers above 0"),
        ("1 a.onnx 1 2 f 1 validation\n", "train or test"),
        ("1 a.onnx 1 2 f 1 test\n2 b.onnx 1 2 f 1\n", "in some rows only"),
    ],
)
def test_malformed_tables_are_refused_in_one_line(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "gt.txt").write_text(content)
    with pytest.raises(DataError) as caught:
        read_nnlqp(tmp_path)
    assert said in str(caught.value) and "gt.txt" in str(caught.value) and "\n" not in str(caught.value)


def test_folders_without_a_table_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"file not found: .*gt\.txt"):
        read_nnlqp(tmp_path)
    with pytest.raises(DataError, match="is no folder"):
        read_nnlqp(tmp_path / "absent")
    (tmp_path / "gt.txt").write_bytes(np.arange(200, 250, dtype=np.uint8).tobytes())
    with pytest.raises(DataError, match="no table of NNLQP"):
        read_nnlqp(tmp_path)
    os.mkfifo(tmp_path / "gt_stage.txt")
    with pytest.raises(DataError, match="is a pipe"):
        read_nnlqp(tmp_path)
