"""No sentence is left out of a batch, whatever the size of the data set; importing fairseq leaves other logs alone."""

import io
import subprocess
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest
from fairseq.data import data_utils
from fairseq.data.data_utils_fast import batch_by_size_vec
from fairseq.tasks.translation import TranslationTask

from fairseq_ext.patches import keep_all_sentences
from fairseq_ext.supernets.supernet import TranslationSupernet
from fairseq_ext.task import SupernetTranslationTask
from nas_core.cli import main
from tests.fairseq_ext.running import passed
from tests.warm import python

SIZES = {"train": 53, "valid": 53, "test": 53, "test1": 5}
"""Of the splits; in batches of multiples of eight, fairseq alone would leave out five sentences of each."""


@pytest.fixture(scope="module")
def odd(corpus, tmp_path_factory):
    """Splits of these sizes; sentence ``i`` of a split has about ``i / 6`` words."""
    folder = tmp_path_factory.mktemp("odd")
    for split, pairs in SIZES.items():
        source = [[f"s{(i + j) % 12}" for j in range(1 + i // 6)] for i in range(pairs)]
        text = "".join(" ".join(words) + "\n" for words in source)
        (folder / f"{split}.src").write_text(text)
        (folder / f"{split}.tgt").write_text(text.replace("s", "t"))
    passed(
        "preprocess", "-s", "src", "-t", "tgt", "--trainpref", folder / "train", "--validpref", folder / "valid",
        "--workers", 1, "--testpref", f"{folder / 'test'},{folder / 'test1'}", "--destdir", folder / "bin",
        "--srcdict", corpus / "dict.src.txt", "--tgtdict", corpus / "dict.tgt.txt",
    )  # fmt: skip
    return folder / "bin"


def test_batches_are_those_of_fairseq_and_the_last_one():
    rng = np.random.default_rng(0)
    complete = 0
    for _ in range(300):
        lengths = np.sort(rng.integers(1, 30, rng.integers(1, 120)))
        indices = rng.permutation(1000)[: len(lengths)]
        tokens, sentences, multiple = int(rng.integers(30, 300)), int(rng.integers(1, 40)), int(rng.integers(1, 10))
        limits = (tokens, sentences, multiple)
        expected = batch_by_size_vec(indices, lengths, *limits)
        plain = data_utils.batch_by_size.of_fairseq(indices, None, lengths, *limits)
        sizes = dict(zip(indices, lengths, strict=True))
        for batches in (
            data_utils.batch_by_size(indices, None, lengths, *limits),
            data_utils.batch_by_size(iter(indices), sizes.get, None, *limits),
        ):
            assert len(batches) == len(expected) and all(map(np.array_equal, batches, expected))
        complete += len(plain) == len(expected)
    assert 0 < complete < 300


def test_fixed_shapes_and_nothing_at_all():
    keep_all_sentences()
    assert data_utils.batch_by_size(np.arange(0), None, np.arange(0), 100, None, 8) == []
    assert not hasattr(data_utils.batch_by_size.of_fairseq, "of_fairseq")
    shapes = {"max_tokens": None, "max_sentences": None, "fixed_shapes": [(4, 10)]}
    batches = data_utils.batch_by_size(np.arange(6), lambda index: 5, None, required_batch_size_multiple=8, **shapes)
    assert [list(batch) for batch in batches] == [[0, 1, 2, 3], [4, 5]]


@pytest.mark.parametrize("task", [TranslationTask, SupernetTranslationTask])
def test_training_reads_and_validates_every_sentence(arguments, odd, tmp_path, task, monkeypatch):
    numbers = {"train_step": [], "valid_step": []}
    for name, rows in numbers.items():
        step = getattr(task, name)

        def noted(self, sample, *rest, step=step, rows=rows, **options):
            rows.extend(sample["id"].tolist() if type(self) is task else [])
            return step(self, sample, *rest, **options)

        monkeypatch.setattr(task, name, noted)
    kind = "translation" if task is TranslationTask else "supernet_translation"
    passed("train", odd, *arguments[1:], "--task", kind, "--max-epoch", 1, "--save-dir", tmp_path)
    assert [sorted(rows) for rows in numbers.values()] == [list(range(53))] * 2


def test_search_evaluates_on_every_sentence(trained, odd, tmp_path, monkeypatch):
    seen = []
    read = TranslationSupernet.batches

    def noted(self):
        batches = read(self)
        seen.append(sorted(number for batch in batches for number in batch["id"].tolist()))
        return batches

    monkeypatch.setattr(TranslationSupernet, "batches", noted)
    command = ["search", "--checkpoint", trained("none"), "--data", odd, "--out", tmp_path / "run"]
    command += ["--strategy", "random", "--set", "evaluations=2", "--finalists", 1, "--no-measure"]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as err:
        assert main(list(map(str, command))) == 0, err.getvalue()
    assert seen and all(numbers == list(range(SIZES["valid"])) for numbers in seen)


def test_loggers_of_others_stay_quiet() -> None:
    program = "import logging, fairseq_ext; print(logging.root.level, logging.root.handlers)"
    starter, environment = python()
    done = subprocess.run([starter, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "30 []"
