"""Two collections at once, and files that hold a measurement twice: what is learned never judges."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.cli import main
from nas_core.errors import ConfigError
from nas_core.latency.by_genes import LatencyDataset, collect, fit, load_latency_data, planned_architectures
from nas_core.latency.by_genes.fit import random_split
from nas_core.latency.by_genes.ridge import LinearModel
from nas_core.space import get_space
from tests.latency.by_genes.machine import TIMING, WORKLOAD, Machine, run


def test_the_second_collection_into_a_file_is_refused(tmp_path: Path, machine: Machine) -> None:
    path, build, said = tmp_path / "lat.jsonl", machine.build, []

    def meanwhile(architecture: Any) -> Any:
        with pytest.raises(ConfigError) as caught:
            collect(path, get_space("hat_small"), build, 30, TIMING, WORKLOAD, 4, progress=False)
        said.append(str(caught.value))
        return build(architecture)

    found = collect(path, get_space("hat_small"), meanwhile, 20, TIMING, WORKLOAD, 4, progress=False)
    assert len(said) == 21 and f"is measuring into {path}; wait for it to end, or give another file" in said[0]
    assert found.architectures() == planned_architectures(get_space("hat_small"), 20, 4)
    assert [path.name for path in tmp_path.iterdir()] == ["lat.jsonl"]
    run(path, machine, 22)


def test_a_refused_collection_leaves_nothing(tmp_path: Path, machine: Machine) -> None:
    with pytest.raises(ConfigError, match="asked for"):
        run(tmp_path / "new" / "lat.jsonl", machine, 0)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def repeated(tmp_path: Path, machine: Machine) -> Path:
    """What two processes left that took no notice of each other: 40 architectures in 70 lines."""
    path = tmp_path / "lat.jsonl"
    run(path, machine, 40)
    header, *lines = path.read_text().splitlines()
    records = [json.loads(line) for line in lines]
    for record in records[:30]:
        record["latency_ms"] *= 7
    again = [json.dumps(record) for record in records[:30]]
    random.Random(0).shuffle(again)
    path.write_text("\n".join([header, *lines, *again]) + "\n")
    return path


def test_the_first_measurement_of_an_architecture_counts(repeated: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = load_latency_data(repeated)
    assert len(LatencyDataset.read(repeated).records) == 70 and len(data) == 40
    assert "30 of 70 measurements are of architectures that it holds before; they are left out" in caplog.text
    assert data.latency_ms.max() == pytest.approx(data.latency_ms[1]), "not seven times as much"
    assert len(np.unique(data.inputs, axis=0)) == 40


def test_no_architecture_is_learned_and_judged_by(
    repeated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts: list[tuple[Any, Any]] = []

    def seen(*arguments: Any) -> Any:
        parts.append(random_split(*arguments))
        return parts[-1]

    monkeypatch.setitem(fit.__globals__, "random_split", seen)
    data = load_latency_data(repeated)
    for seed in range(5):
        fit(data, lambda: LinearModel(data.space, data.source), seed=seed)
        train, test = (set(map(tuple, data.inputs[part].tolist())) for part in parts[-1])
        assert not train & test and len(train | test) == 40
    assert main(["latency", "fit", "--data", str(repeated), "--out", str(tmp_path / "m.json")]) == 0
    assert "of 40 measurements" in capsys.readouterr().out


def test_a_file_with_repeats_is_continued(repeated: Path, machine: Machine) -> None:
    machine.built.clear()
    found = run(repeated, machine, 42)
    assert len(machine.built) == 3 and len(found.data()) == 42
