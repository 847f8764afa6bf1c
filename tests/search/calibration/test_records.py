"""Results of trained networks, as people write them and as studies do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.search.calibration.files import read_trained
from nas_core.space import get_space
from nas_core.studies.gap import read_runs

SPACE = get_space("mformer_translation_small")
NETWORKS = SPACE.architectures(SPACE.sample_rows(np.random.default_rng(0), 3))


def written(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("field", ["genes", "architecture"])
def test_calibrations_and_studies_read_each_others_results(field: str, tmp_path: Path) -> None:
    records = [{field: one.to_dict(), "metrics": {"loss": 4.0 + i}} for i, one in enumerate(NETWORKS)]
    path = written(tmp_path / "standalone.jsonl", records)
    trained = read_trained([path], SPACE, "loss")
    assert trained.architectures == list(NETWORKS) and trained.standalone == [4.0, 5.0, 6.0]
    assert [run.architecture for run in read_runs(path, SPACE)] == list(NETWORKS)
