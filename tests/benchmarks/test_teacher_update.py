"""Benchmark teacher_update: cost of a teacher by sampling, and its aim."""

import pytest

pytest.importorskip("fairseq")

from benchmarks.supernet.teacher_update import main
from nas_core.files.reading import read_json


def test_one_row_per_teacher(tmp_path):
    main(["--size", "tiny", "--repeats", "2", "--out", str(tmp_path / "teacher_update.json")])
    result = read_json(tmp_path / "teacher_update.json")
    expected = {"sandwich": {"teacher", "largest"}, "spos": {"teacher"}}
    for sampling, teachers in expected.items():
        computed = result[sampling]
        assert computed["times_none"].keys() == teachers and computed["update_ms"].keys() == teachers | {"none"}
        assert all(0 < row["q25"] <= row["median"] <= row["q75"] for row in computed["times_none"].values())
        assert computed["reached"].keys() == {"teacher"}
    assert result["measured"]["command"].startswith("python -m benchmarks teacher_update")
