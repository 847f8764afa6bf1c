"""Corpora of made-up languages and supernets trained on them, shared by all tests of the plug-in."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.space import save_space

if find_spec("fairseq") is None:  # a file that is named skips with the reason
    collect_ignore_glob = ["*"]
else:
    from fairseq.tasks.translation import TranslationConfig, TranslationTask

    from tests.fairseq_ext.running import (
        CPU,
        FORMS,
        OWN,
        SPACE,
        UPDATES,
        USER_DIR,
        passed,
        randomised,
        sentence,
        set_up,
        subnet,
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.fairseq)
            for warning in (UserWarning, FutureWarning, DeprecationWarning):  # of fairseq and its hydra
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{warning.__name__}"))


def translate(words: list[str]) -> list[str]:
    """The language: each word has one translation, and pairs of words change places."""
    swapped = [word for pair in zip(words[1::2], words[::2], strict=False) for word in pair]
    return [f"t{word[1:]}" for word in swapped + words[len(swapped) :]]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of fairseq-preprocess: 200 training, 40 validation and 20 test pairs of 1 to 9 words."""
    folder = tmp_path_factory.mktemp("corpus")
    stream = random.Random(3)
    for split, pairs in (("train", 200), ("valid", 40), ("test", 20)):
        source = [[f"s{stream.randrange(12)}" for _ in range(stream.randint(1, 9))] for _ in range(pairs)]
        for side, lines in (("src", source), ("tgt", [translate(words) for words in source])):
            (folder / f"{split}.{side}").write_text("".join(" ".join(words) + "\n" for words in lines))
    names = [f"--{split}pref={folder / split}" for split in ("train", "valid", "test")]
    passed("preprocess", "-s", "src", "-t", "tgt", *names, "--destdir", folder / "bin", "--workers", 1)
    return folder / "bin"


@pytest.fixture(scope="session")
def joined(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus with one dictionary for both languages."""
    folder = tmp_path_factory.mktemp("joined")
    names = [f"--{split}pref={corpus.parent / split}" for split in ("train", "valid", "test")]
    passed("preprocess", "-s", "src", "-t", "tgt", *names, "--joined-dictionary", "--destdir", folder, "--workers", 1)
    return folder


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of ``fairseq-preprocess --only-source``: 200 training, 40 validation and 20 test sentences."""
    folder, stream = tmp_path_factory.mktemp("text"), random.Random(3)
    for split, count in (("train", 200), ("valid", 40), ("test", 20)):
        (folder / split).write_text("".join(" ".join(sentence(stream)) + "\n" for _ in range(count)))
    names = [f"--{split}pref={folder / split}" for split in ("train", "valid", "test")]
    passed("preprocess", "--only-source", *names, "--destdir", folder / "bin", "--workers", 1)
    return folder / "bin"


@pytest.fixture(scope="session")
def labelled(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ``--task sentence_prediction``: whether a sentence begins with an even word."""
    folder, out, stream = tmp_path_factory.mktemp("labels"), tmp_path_factory.mktemp("labelled"), random.Random(4)
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
def own_model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``own_model(kind, form)``: a checkpoint of fairseq's own model after one update, all its weights random."""

    @cache
    def checkpoint(kind: str, form: str) -> Path:
        data, options = OWN[kind]
        folder = tmp_path_factory.mktemp(f"{kind}-{form}")
        common = ["--optimizer", "adam", "--max-update", 1, *CPU, "--disable-validation", "--save-dir", folder]
        passed("train", request.getfixturevalue(data), *options, *FORMS[kind][form], *common)
        return randomised(folder / "checkpoint_last.pt", 4 if data != "joined" else 1)

    return checkpoint


@pytest.fixture(scope="session")
def space_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("space") / "tiny.yml"
    save_space(SPACE, path)
    return path


@pytest.fixture(scope="session")
def arguments(corpus: Path, space_file: Path) -> list[object]:
    """A training command without ``--save-dir`` and ``--max-update``."""
    return [
        corpus, "--user-dir", USER_DIR, "--arch", "mos_transformer_small", "--search-space", space_file,
        "--mos-router-hidden", 8, "--share-decoder-input-output-embed",
        "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1,
        "--optimizer", "adam", "--lr", 0.01, "--batch-size", 16, *CPU, "--log-format", "json", "--log-interval", 1,
        "--no-epoch-checkpoints",
    ]  # fmt: skip


@pytest.fixture(scope="session")
def trained(arguments: list[object], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``trained(mos)``: the checkpoint of a supernet trained with these experts for ``UPDATES``."""

    @cache
    def checkpoint(mos: str) -> Path:
        folder = tmp_path_factory.mktemp(f"supernet-{mos}")
        options = ["--lr", 0.02, "--lr-scheduler", "inverse_sqrt", "--warmup-updates", 20, "--dropout", 0.0]
        options += ["--max-update", UPDATES, "--validate-interval", 5, "--log-interval", 40]
        passed("train", *arguments, *options, "--mos", mos, "--save-dir", folder)
        return folder / "checkpoint_last.pt"

    return checkpoint


@pytest.fixture(scope="session")
def architecture_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A subnet unlike the smallest and the largest: narrow encoder, wide decoder, two layers with different genes."""
    path = tmp_path_factory.mktemp("architecture") / "a.json"
    subnet().save(path)
    return path


@pytest.fixture(scope="session")
def pair(corpus: Path) -> Any:
    """fairseq's translation task on the corpus."""
    task = set_up(TranslationTask, TranslationConfig, corpus)
    for split in ("train", "valid", "test"):
        task.load_dataset(split)
    return task


@pytest.fixture(scope="session")
def batches(pair: Any) -> list[dict[str, Any]]:
    """Two training batches with padding, as fairseq makes them."""
    dataset = pair.dataset("train")
    rows = np.random.default_rng(0).permutation(len(dataset))
    return [dataset.collater([dataset[int(row)] for row in part]) for part in (rows[:7], rows[7:12])]
