"""Data sets of whole networks: splits, files, repeats, NNLQP's release, and quality by family."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nas_core.errors import DataError
from nas_core.latency.by_graph.data import FamilyQuality, NetworkLatencies, family_quality
from nas_core.latency.by_graph.dataset.folder import load_networks, measured_on, read_nnlqp, read_nnlqp_table
from tests.latency.by_graph.networks import data


def test_in_domain_keeps_the_order_and_leaves_nothing_out() -> None:
    train, test = data().in_domain()
    assert train.names.tolist() == ["n0", "n1", "n3", "n4"] and test.names.tolist() == ["n2", "n5"]
    assert [graph.ops[1] for graph in test.graphs] == [2, 5] and test.latency_ms.tolist() == [3.0, 6.0]


def test_out_of_domain_tests_on_one_family_and_learns_from_the_others() -> None:
    train, test = data("abcabc", "000111").out_of_domain("b")
    assert test.names.tolist() == ["n1", "n4"] and train.family_names == ["a", "c"] and len(train) == 4


def test_a_saved_set_is_the_same_set(tmp_path: Path) -> None:
    before = data()
    before.save(tmp_path / "set.npz")
    after = NetworkLatencies.load(tmp_path / "set.npz")
    assert list(after.graphs) == list(before.graphs)
    for name in ("latency_ms", "families", "names", "held_out"):
        assert np.array_equal(getattr(after, name), getattr(before, name))


def test_quality_by_family_by_hand() -> None:
    rows = family_quality([1.05, 1.5, 2.0, 4.3], [1.0, 1.0, 2.0, 4.0], ["a", "b", "b", "b"])
    assert list(rows) == ["a", "b", "average", "all"]
    assert rows["a"] == FamilyQuality(1, pytest.approx(5.0), 100.0)
    assert rows["b"] == FamilyQuality(3, pytest.approx(57.5 / 3), pytest.approx(200 / 3))
    assert rows["average"] == FamilyQuality(4, pytest.approx((5 + 57.5 / 3) / 2), pytest.approx((100 + 200 / 3) / 2))
    assert rows["all"] == FamilyQuality(4, pytest.approx(62.5 / 4), 75.0)


def nnlqp_rows(stage: bool) -> list[str]:
    """Ten networks of each of three families, as the release writes them."""
    lines = []
    for f, family in enumerate(("alexnet", "resnet18", "vgg16")):
        for i in range(10):
            path = f"onnx/nnmeter_{family}/nnmeter_{family}_transform_{i:04d}.onnx"
            last = (" test" if i == 9 else " train") if stage else ""
            lines.append(f"{f * 10 + i + 1:05d} {path} 1 {0.5 + f + i / 10:.5f} {family} 1{last}")
    return lines


@pytest.fixture(scope="module")
def nnlqp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnx", reason="onnx is not installed")
    from tests.graph.onnx.models import onnx, residual

    root = tmp_path_factory.mktemp("unseen_structure")
    for index, line in enumerate(nnlqp_rows(False)):
        path = root / line.split()[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(residual(8 + 2 * index, batch="b" if index % 2 else 1), path)
    (root / "gt.txt").write_text("\n".join(nnlqp_rows(False)) + "\n")
    return root


@pytest.mark.onnx
def test_all_networks_of_nnlqp(nnlqp: Path) -> None:
    read = read_nnlqp(nnlqp)
    assert len(read) == 30 and read.family_names == ["alexnet", "resnet18", "vgg16"] and not read.skipped
    assert read.latency_ms[11] == pytest.approx(1.6) and read.names[11].endswith("resnet18_transform_0001.onnx")
    assert {len(graph) for graph in read.graphs} == {9} and len(set(read.graphs)) == 30
    assert read.graphs.static is not None and (read.graphs.static[:, 0] == 1).all()
    train, test = read.in_domain()
    assert (len(train), len(test)) == (27, 3) and all(name.endswith("_0009.onnx") for name in test.names)
    assert load_networks(nnlqp).names.tolist() == read.names.tolist() and measured_on(nnlqp) is None


@pytest.mark.onnx
def test_unreadable_networks_of_nnlqp_are_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from tests.graph.onnx.models import onnx, residual

    (tmp_path / "broken.onnx").write_bytes(b"broken")
    broken = ["x absent.onnx 1 2.0 vgg16 1", "y broken.onnx 1 2.0 vgg16 1"]
    (tmp_path / "gt.txt").write_text("\n".join(broken))
    with pytest.raises(DataError, match=r"none of the 2 networks .* file not found"):
        read_nnlqp(tmp_path)
    onnx.save(residual(8), tmp_path / "good.onnx")
    (tmp_path / "gt.txt").write_text("\n".join(["z good.onnx 1 3.0 vgg16 1", *broken]))
    read = read_nnlqp(tmp_path)
    assert len(read) == 1 and [path for path, _ in read.skipped] == ["absent.onnx", "broken.onnx"]
    assert "2 of 3 networks are skipped" in caplog.text


def test_stages_of_nnlqp_follow_from_the_order(tmp_path: Path) -> None:
    (tmp_path / "gt.txt").write_text("\n".join(nnlqp_rows(False)))
    (tmp_path / "gt_stage.txt").write_text("\n".join(nnlqp_rows(True)))
    plain, staged = (read_nnlqp_table(tmp_path / name) for name in ("gt.txt", "gt_stage.txt"))
    assert plain == staged and sum(row.held_out for row in plain) == 3
    assert plain[9].held_out and plain[9].family == "alexnet" and plain[9].path.endswith("transform_0009.onnx")
