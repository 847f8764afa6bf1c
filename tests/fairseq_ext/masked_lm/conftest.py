"""Supernets of masked language models, trained on sentences of a made-up language."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("fairseq") is not None:
    from tests.fairseq_ext.running import CPU, MASKED, MASKED_SPACE, USER_DIR, passed

from nas_core.space import save_space


@pytest.fixture(scope="session")
def options() -> list[object]:
    """Options of every training of a supernet, without the loss."""
    return [
        "--user-dir", USER_DIR, "--optimizer", "adam", "--lr", 0.01, "--batch-size", 16, *CPU, "--log-format", "json",
        "--log-interval", 1, "--no-epoch-checkpoints", "--mos-router-hidden", 8, "--dropout", 0,
        "--attention-dropout", 0, "--disable-validation",
    ]  # fmt: skip


@pytest.fixture(scope="session")
def space_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("space") / "tiny.yml"
    save_space(MASKED_SPACE, path)
    return path


@pytest.fixture(scope="session")
def trained(
    text: Path, options: list[object], space_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """``trained(mos)``: the checkpoint of a supernet trained with these experts."""

    @cache
    def checkpoint(mos: str) -> Path:
        folder = tmp_path_factory.mktemp(f"masked-{mos}")
        network = [*MASKED, "--task", "masked_lm", "--arch", "mos_roberta_small", "--search-space", space_file]
        passed("train", text, *options, *network, "--mos", mos, "--max-update", 100, "--save-dir", folder)
        return folder / "checkpoint_last.pt"

    return checkpoint
