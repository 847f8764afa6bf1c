"""The benchmark of workers, tiny: each way gives the same losses."""

from __future__ import annotations

from pathlib import Path

from benchmarks.search.device_workers import main
from nas_core.files.reading import read_json


def test_all_ways_evaluate_the_same(tmp_path: Path) -> None:
    out = tmp_path / "workers.json"
    main(["--device", "cpu,cpu", "--architectures", "2", "--rounds", "1", "--out", str(out)])
    found = read_json(out)
    assert [row["equal_losses"] for row in found["rows"]] == [True] * 3
    assert all(row["architectures_per_s"] > 0 for row in found["rows"]) and len(found["ratio_to_one_worker"]) == 1
