"""No sentence is left out of a batch, whatever the size of the data set."""

import numpy as np
import pytest
from fairseq.data import data_utils
from fairseq.data.data_utils_fast import batch_by_size_vec

from fairseq_ext.task import SupernetTranslationTask
from nas_core.supernet import open_supernet
from tests.fairseq_ext.running import passed

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
    for _ in range(60):
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
    assert 0 < complete < 60


def test_training_reads_and_validates_every_sentence(arguments, odd, tmp_path, monkeypatch):
    numbers = {"train_step": [], "valid_step": []}
    for name, rows in numbers.items():
        step = getattr(SupernetTranslationTask, name)

        def noted(self, sample, *rest, step=step, rows=rows, **options):
            rows.extend(sample["id"].tolist())
            return step(self, sample, *rest, **options)

        monkeypatch.setattr(SupernetTranslationTask, name, noted)
    passed("train", odd, *arguments[1:], "--task", "supernet_translation", "--max-epoch", 1, "--save-dir", tmp_path)
    assert [sorted(rows) for rows in numbers.values()] == [list(range(53))] * 2


def test_a_supernet_evaluates_every_sentence(trained, odd):
    batches = open_supernet(trained("neuron"), data=str(odd)).batches()
    assert sorted(number for batch in batches for number in batch["id"].tolist()) == list(range(SIZES["valid"]))
