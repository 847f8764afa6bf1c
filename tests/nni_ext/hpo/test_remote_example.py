"""The example of NNI's remote training service: its structure, by NNI's own classes; nothing is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from nni.experiment.config import ExperimentConfig, RemoteConfig

from nni_ext.hpo.tuner import SearchTuner

EXAMPLE = Path(__file__).parents[3] / "examples" / "nni" / "remote.yml"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519").touch()


def test_nni_takes_the_example() -> None:
    config = ExperimentConfig.load(EXAMPLE)
    config.search_space_file = EXAMPLE.parent / config.search_space_file
    config.validate()
    service = config.canonical_copy().training_service
    assert isinstance(service, RemoteConfig)
    assert [machine.host for machine in service.machine_list] == ["192.0.2.10", "192.0.2.11"]
    assert service.machine_list[1].gpu_indices == [0, 1]
    assert service.trial_gpu_number == 1
    assert config.tuner.name == "nas-ext" and config.tuner.class_args["strategy"] == "evolution"
    assert SearchTuner(**config.tuner.class_args).config.iterations == 30
