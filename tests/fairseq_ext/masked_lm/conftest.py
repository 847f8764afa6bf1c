"""A task of sentences with labels, supernets of masked language models, and networks of fairseq's own."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("fairseq") is not None:
    from tests.fairseq_ext.masked_lm.training import CLASSES, COMMON, MASKED, PLAIN, SIZES, SPACE
    from tests.fairseq_ext.running import passed, randomised, sentence

from nas_core.space import save_space


@pytest.fixture(scope="session")
def labelled(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ``--task sentence_prediction``: whether a sentence begins with an even word."""
    folder, out = tmp_path_factory.mktemp("labels"), tmp_path_factory.mktemp("labelled")
    stream = random.Random(4)
    for split, count in (("train", 80), ("valid", 20)):
        drawn = [sentence(stream) for _ in range(count)]
        (folder / f"{split}.input0").write_text("".join(" ".join(words) + "\n" for words in drawn))
        labels = ("yes" if int(words[0][1:]) % 2 == 0 else "no" for words in drawn)
        (folder / f"{split}.label").write_text("".join(f"{label}\n" for label in labels))
    for part, words in (("input0", ["--srcdict", text / "dict.txt"]), ("label", [])):
        splits = [f"--{split}pref={folder / split}.{part}" for split in ("train", "valid")]
        passed("preprocess", "--only-source", *splits, *words, "--destdir", out / part, "--workers", 1)
    return out


@pytest.fixture(scope="session")
def space_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("space") / "tiny.yml"
    save_space(SPACE, path)
    return path


@pytest.fixture(scope="session")
def trained(text: Path, space_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``trained(mos)``: the checkpoint of a supernet trained with these experts."""

    @cache
    def checkpoint(mos: str) -> Path:
        folder = tmp_path_factory.mktemp(f"masked-{mos}")
        options = [*MASKED, "--task", "masked_lm", "--arch", "mos_roberta_small", "--search-space", space_file]
        passed("train", text, *COMMON, *options, "--mos", mos, "--max-update", 120, "--save-dir", folder)
        return folder / "checkpoint_last.pt"

    return checkpoint


@pytest.fixture(scope="session")
def roberta(text: Path, labelled: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``roberta(options)``: the checkpoint of such a network of fairseq's own after one update, its biases and norms
    random, which as constants would hide mistakes."""

    @cache
    def checkpoint(*options: object, task: str = "masked_lm") -> Path:
        folder = tmp_path_factory.mktemp("roberta")
        data, own = (text, MASKED) if task == "masked_lm" else (labelled, CLASSES)
        passed("train", data, "--arch", "roberta_base", *SIZES, "--task", task, *own, *PLAIN, *options,
                   "--save-dir", folder)  # fmt: skip
        return randomised(folder / "checkpoint_last.pt", 4)

    return checkpoint
