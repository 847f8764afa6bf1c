"""No sentence is left out of a batch, whatever the size of the data set."""

import io
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
from tests.fairseq_ext.running import DECODING, USER_DIR, assert_one_line, run

SIZES = {"valid": 53, "test": 53, "test1": 5}
"""Of the splits; in batches of multiples of eight, fairseq alone would leave out five sentences of each."""


@pytest.fixture(scope="module")
def odd(corpus, tmp_path_factory):
    """The corpus with splits of these sizes; sentence ``i`` of a split has about ``i / 6`` words."""
    folder = tmp_path_factory.mktemp("odd")
    for split, pairs in SIZES.items():
        source = [[f"s{(i + j) % 12}" for j in range(1 + i // 6)] for i in range(pairs)]
        text = "".join(" ".join(words) + "\n" for words in source)
        (folder / f"{split}.src").write_text(text)
        (folder / f"{split}.tgt").write_text(text.replace("s", "t"))
    made = run(
        "preprocess", "-s", "src", "-t", "tgt", "--validpref", folder / "valid", "--workers", 1,
        "--testpref", f"{folder / 'test'},{folder / 'test1'}", "--destdir", folder / "bin",
        "--srcdict", corpus / "dict.src.txt", "--tgtdict", corpus / "dict.tgt.txt",
    )  # fmt: skip
    assert made.code == 0, made.err
    for file in corpus.glob("train.*"):
        (folder / "bin" / file.name).symlink_to(file)
    return folder / "bin"


@pytest.fixture
def validated(monkeypatch):
    """Numbers of the sentences that were validated, in order."""
    seen = []
    for task in (TranslationTask, SupernetTranslationTask):
        step = task.valid_step

        def valid_step(self, sample, model, criterion, step=step, whole=task):
            if type(self) is whole:
                seen.extend(sample["id"].tolist())
            return step(self, sample, model, criterion)

        monkeypatch.setattr(task, "valid_step", valid_step)
    return seen


def test_batches_are_those_of_fairseq_and_the_last_one():
    rng = np.random.default_rng(0)
    whole = 0
    for _ in range(300):
        lengths = np.sort(rng.integers(1, 30, rng.integers(1, 120)))
        indices = rng.permutation(1000)[: len(lengths)]
        tokens, sentences, multiple = int(rng.integers(30, 300)), int(rng.integers(1, 40)), int(rng.integers(1, 10))
        limits = (tokens, sentences, multiple)
        expected = batch_by_size_vec(indices, lengths, *limits)
        plain = data_utils.batch_by_size.of_fairseq(indices, None, lengths, *limits)
        got = data_utils.batch_by_size(indices, None, lengths, *limits)
        for batches in (got, *([plain] if len(plain) == len(got) else [])):
            assert all(map(np.array_equal, batches, expected)) and len(batches) == len(expected)
        by_function = data_utils.batch_by_size(
            iter(indices), dict(zip(indices, lengths, strict=True)).get, None, *limits
        )
        assert all(map(np.array_equal, by_function, expected))
        whole += len(plain) == len(got)
    assert 0 < whole < 300


def test_fixed_shapes_and_nothing_at_all():
    keep_all_sentences()
    assert data_utils.batch_by_size(np.arange(0), None, np.arange(0), 100, None, 8) == []
    assert not hasattr(data_utils.batch_by_size.of_fairseq, "of_fairseq")
    shapes = {"max_tokens": None, "max_sentences": None, "fixed_shapes": [(4, 10)]}
    got = data_utils.batch_by_size(np.arange(6), lambda index: 5, None, required_batch_size_multiple=8, **shapes)
    assert [batch.tolist() if hasattr(batch, "tolist") else batch for batch in got] == [[0, 1, 2, 3], [4, 5]]


@pytest.mark.parametrize("split", ["test", "test1"])
def test_generate_translates_every_sentence(trained, odd, split):
    done = run("generate", odd, "--path", trained("none"), *DECODING, "--beam", 1, "--gen-subset", split)
    assert done.code == 0, done.err
    assert sorted(done.hypotheses()) == list(range(SIZES[split]))
    assert f"Translated {SIZES[split]} sentences" in done.out


def test_interactive_translates_every_line(trained, odd):
    lines = odd.parent / "test1.src"
    options = ["--input", lines, "--buffer-size", 8, "--batch-size", 4, "-s", "src", "-t", "tgt"]
    done = run("interactive", odd, "--path", trained("none"), *DECODING, *options)
    assert done.code == 0, done.err
    assert sorted(done.hypotheses()) == list(range(5))


@pytest.mark.parametrize("task", ["translation", "supernet_translation"])
def test_training_validates_every_sentence(arguments, odd, tmp_path, task, validated):
    done = run("train", odd, *arguments[1:], "--task", task, "--max-update", 1, "--save-dir", tmp_path)
    assert done.code == 0, done.err
    assert sorted(validated) == list(range(SIZES["valid"]))


def test_training_sees_every_sentence(arguments, odd, tmp_path, monkeypatch):
    seen = []
    step = TranslationTask.train_step
    monkeypatch.setattr(
        TranslationTask,
        "train_step",
        lambda self, sample, *rest, **options: (
            seen.extend(sample["id"].tolist()),
            step(self, sample, *rest, **options),
        )[1],
    )
    few = ["--train-subset", "valid", "--valid-subset", "test1", "--max-epoch", 1, "--save-dir", tmp_path]
    done = run("train", odd, *arguments[1:], *few)
    assert done.code == 0, done.err
    assert sorted(seen) == list(range(SIZES["valid"]))


@pytest.mark.parametrize("split", ["valid", "test1"])
def test_validate_reads_every_sentence(trained, odd, split, validated):
    options = ["--user-dir", USER_DIR, "--task", "translation", "--cpu", "--batch-size", 16, "--valid-subset", split]
    done = run("validate", odd, "--path", trained("none"), *options)
    assert done.code == 0, done.err
    assert sorted(validated) == list(range(SIZES[split]))


def test_search_evaluates_on_every_sentence(trained, odd, tmp_path, monkeypatch):
    seen = []
    read = TranslationSupernet.batches

    def validation(self):
        batches = read(self)
        seen.append(sorted(number for batch in batches for number in batch["id"].tolist()))
        return batches

    monkeypatch.setattr(TranslationSupernet, "batches", validation)
    command = ["search", "--checkpoint", trained("none"), "--data", odd, "--out", tmp_path / "run"]
    command += ["--strategy", "random", "--set", "evaluations=2"]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as err:
        assert main([str(word) for word in [*command, "--finalists", 1, "--no-measure"]]) == 0, err.getvalue()
    assert seen and all(numbers == list(range(SIZES["valid"])) for numbers in seen)


def test_a_set_whose_sentences_are_all_too_long(arguments, odd, tmp_path):
    short = ["--max-source-positions", 1, "--max-target-positions", 1, "--skip-invalid-size-inputs-valid-test"]
    done = run("train", odd, *arguments[1:], *short, "--max-update", 1, "--save-dir", tmp_path)
    assert_one_line(done, "--max-source-positions")
