"""Supernets with other experts and routers: which are trained, and their figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nas_core.errors import ConfigError
from nas_core.files.journal import append_jsonl
from nas_core.studies import STUDIES, StudyResult, Subject
from nas_core.studies.experts import ExpertsConfig, RouterConfig
from tests.studies.trainers import Trainer
from tests.toys import ToySupernet


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "supernet.pt"
    path.write_bytes(b"weights")
    return path


def asked(study: str, supernet: ToySupernet, checkpoint: Path, **options: Any) -> StudyResult:
    config = {"experts": ExpertsConfig, "router": RouterConfig}[study](**options)
    return STUDIES.get(study).run([Subject("one", checkpoint, supernet)], config, checkpoint.parent / "out")


def test_supernets_with_other_numbers_of_experts_are_trained_once(checkpoint: Path, tmp_path: Path) -> None:
    trainer = Trainer()
    for _ in range(2):
        result = asked("experts", trainer, checkpoint, experts=(1, 2, 4))
        assert [(row["experts"], row["trained"]) for row in result.summary] == [(1, "here"), (2, "before"), (4, "here")]
        assert [row["largest"] for row in result.summary] == pytest.approx([7 - 0.2, 7, 7 - 0.8])
        assert [row["smallest"] - row["mean"] for row in result.summary] == pytest.approx([1.0] * 3)
    assert trainer.trained == 2 and len(result.rows) == 9
    with pytest.raises(ConfigError, match="changes"):
        asked("experts", trainer, checkpoint, train={"lr": "1"})


def test_routers_of_each_kind_and_depth(checkpoint: Path) -> None:
    trainer = Trainer()
    result = asked("router", trainer, checkpoint, layers=(2, 3), kind=("layer", "neuron"))
    results = [(row["kind"], row["router_layers"], row["trained"]) for row in result.summary]
    assert results == [("layer", 2, "before"), ("layer", 3, "here"), ("neuron", 2, "here"), ("neuron", 3, "here")]
    assert [row["smallest"] for row in result.summary] == pytest.approx([9, 8.4, 8.6, 8.4])
    assert [row["router_layers"] for row in asked("router", trainer, checkpoint, layers=(3,)).summary] == [2, 3]
    assert trainer.trained == 3


def test_error_and_tau_against_standalone_networks(checkpoint: Path, tmp_path: Path) -> None:
    for width in (1, 2, 3):
        append_jsonl(tmp_path / "s.jsonl", {"architecture": {"width": width}, "metrics": {"loss": 9.0 - width}})
    result = asked("experts", Trainer(), checkpoint, experts=(4,), standalone=tmp_path / "s.jsonl")
    assert [row["error"] for row in result.summary] == pytest.approx([1.0, 0.2])
    assert [row["tau"] for row in result.summary] == pytest.approx([1.0, 1.0]) and "not compared" in result.notes[1]
