"""fairseq's settings of standalone trainings: values as people type them, and an update of as many examples."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_ext.supernets.training import SETTINGS, run_settings
from nas_core.errors import ConfigError

GROUPS: dict[str, Any] = {
    "distributed_training": {"_name": None, "distributed_world_size": 1, "device_id": 0},
    "dataset": {"_name": None, "max_tokens": None, "train_subset": "train"},
    "optimization": {"_name": None, "max_update": 120, "update_freq": [2, 1], "lr": [0.02]},
    "optimizer": {"_name": "adam", "adam_betas": [0.9, 0.999], "weight_decay": 0.0, "lr": [0.02]},
    "lr_scheduler": {"_name": "inverse_sqrt", "warmup_updates": 20, "lr": [0.02]},
    "bpe": None,
}
"""Some of the groups of a checkpoint; a model's options are those of all groups and its own."""
OF_MODEL = {
    "optimizer": "adam",
    "lr_scheduler": "inverse_sqrt",
    "bpe": None,
    "dropout": 0.1,
    "mos": "none",
    "mos_experts": 2,
    "subnet": None,
    "search_space": "tiny",
    "valid_random": 2,
}


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., Any]:
    """``settings(processes, name=text, ..)`` of a supernet trained by several ``processes``, with other ``groups``."""

    def made(processes: int = 1, groups: dict[str, Any] | None = None, **changes: str) -> Any:
        groups = {name: dict(group) if group else None for name, group in {**GROUPS, **(groups or {})}.items()}
        groups["distributed_training"]["distributed_world_size"] = processes
        every = {name: value for group in groups.values() for name, value in (group or {}).items()}
        groups["model"] = Namespace(**{**every, **OF_MODEL, "_name": "hat_transformer"})
        torch.save({"cfg": groups, "model": {}}, tmp_path / SETTINGS)
        return run_settings(tmp_path, "bin", changes)

    return made


@pytest.mark.parametrize("text", ["1e-3", "0.001", "[1e-3]"])
def test_numbers_may_be_written_without_a_point(settings: Callable[..., Any], text: str) -> None:
    config = settings(lr=text, weight_decay="1e-4", max_update="2e3", max_tokens="4e3", dropout="1e-1")
    assert [config[group].lr for group in ("optimization", "optimizer", "lr_scheduler")] == [[0.001]] * 3
    assert (config.optimizer.weight_decay, config.model.dropout) == (1e-4, 0.1)
    for value, expected in ((config.optimization.max_update, 2000), (config.dataset.max_tokens, 4000)):
        assert value == expected and isinstance(value, int)


def test_values_of_another_kind_are_refused(settings: Callable[..., Any]) -> None:
    for name, text in (("lr", "fast"), ("adam_betas", "(0.9, 0.98)"), ("max_update", "[1]"), ("weight_decay", "x")):
        with pytest.raises(ConfigError, match=f"setting {name} is"):
            settings(**{name: text})
    assert settings(adam_betas="[0.9, 98e-2]").optimizer.adam_betas == [0.9, 0.98]
    assert settings(train_subset="1e-3").dataset.train_subset == "1e-3"


def test_a_decay_lasts_as_long_as_the_training(settings: Callable[..., Any]) -> None:
    total = {"lr_scheduler": {"_name": "polynomial_decay", "total_num_update": 500, "lr": [0.02]}}
    for changes, expected in (
        ({}, 500),
        ({"max_update": "2e3"}, 2000),
        ({"max_update": "0"}, 500),
        ({"max_update": "2000", "total_num_update": "9"}, 9),
    ):
        assert settings(**changes, groups=total).lr_scheduler.total_num_update == expected
    assert "total_num_update" not in settings(max_update="9").lr_scheduler


@pytest.mark.parametrize("name", ["optimizer", "mos_experts", "subnet", "valid_random", "distributed_world_size"])
def test_settings_of_the_study_and_of_supernets_are_fixed(settings: Callable[..., Any], name: str) -> None:
    with pytest.raises(ConfigError, match=f"setting {name}"):
        settings(**{name: "3"})


def test_one_process_reads_as_many_batches_for_an_update_as_all_of_the_supernet(settings: Callable[..., Any]) -> None:
    config = settings(4)
    assert config.distributed_training.distributed_world_size == 1
    assert config.optimization.update_freq == [8, 4] == config.model.update_freq
    assert settings(4, update_freq="3").optimization.update_freq == [3]
    assert settings().optimization.update_freq == [2, 1]
