"""Supernets of language models, trained on sentences of a made-up language."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("fairseq") is not None:
    from tests.fairseq_ext.running import CPU, LANGUAGE_SPACE, USER_DIR, passed

from nas_core.space import save_space


@pytest.fixture(scope="session")
def command(text: Path, tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """A training command without ``--arch``, ``--save-dir`` and ``--max-update``."""
    space = tmp_path_factory.mktemp("language-space") / "tiny.yml"
    save_space(LANGUAGE_SPACE, space)
    return [
        text, "--user-dir", USER_DIR, "--task", "supernet_language_modeling", "--search-space", space,
        "--mos-router-hidden", 8, "--criterion", "cross_entropy", "--tokens-per-sample", 24, "--dropout", 0.0,
        "--optimizer", "adam", "--lr", 0.01, "--batch-size", 8, *CPU, "--log-format", "json", "--log-interval", 1,
        "--no-epoch-checkpoints",
    ]  # fmt: skip


@pytest.fixture(scope="session")
def supernet_of(command: list[object], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``supernet_of(arch)``: the checkpoint of a supernet trained with that ``--arch``."""

    @cache
    def checkpoint(arch: str) -> Path:
        folder = tmp_path_factory.mktemp(arch)
        options = ["--max-update", 40, "--sampling", "sandwich", "--disable-validation", "--log-interval", 20]
        passed("train", *command, "--arch", arch, *options, "--save-dir", folder)
        return folder / "checkpoint_last.pt"

    return checkpoint
