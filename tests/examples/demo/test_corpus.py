"""Corpora from folders: what is found, what is refused, and that segmentation can be undone."""

import gzip

import pytest

from examples.demo import corpus
from examples.demo.segment import Subwords, Words
from nas_core.errors import ConfigError, DataError, NasExtError

SENTENCES = ["The dog sleeps.", "A cat (the old one) sees  the dog!", "Don't – no.", "it costs 3.50 €, I think"]


def fill(folder, splits=("train", "val", "test_2016_flickr"), suffixes=("de", "en"), lines=SENTENCES, packed=True):
    for split in splits:
        for suffix in suffixes:
            text = "".join(f"{line} {suffix}\n" for line in lines).encode()
            name = f"{split}.{suffix}"
            (folder / (name + ".gz" if packed else name)).write_bytes(gzip.compress(text) if packed else text)
    return folder


def test_reads_gz_and_plain_files(tmp_path):
    found = corpus.read_folder(fill(tmp_path))
    assert (found.source, found.target, found.test_name) == ("en", "de", "test_2016_flickr")
    assert {name: len(pairs) for name, pairs in found.splits.items()} == {"train": 4, "valid": 4, "test": 4}
    assert found.splits["train"][1] == (
        "A cat (the old one) sees the dog! en",
        "A cat (the old one) sees the dog! de",
    )
    (tmp_path / "train.en").write_text("plain wins\n" * 4, encoding="utf-8")
    assert corpus.read_folder(tmp_path).splits["train"][0][0] == "plain wins"


def test_direction_lower_case_and_test_set(tmp_path):
    fill(tmp_path, ("train", "valid", "test", "test_hard"), ("en", "de", "fr"), packed=False)
    with pytest.raises(DataError, match=r"train in de, en, fr; say which two with --direction"):
        corpus.read_folder(tmp_path)
    found = corpus.read_folder(tmp_path, "de-fr", test="test_hard", lower=True)
    assert (found.source, found.target, found.test_name) == ("de", "fr", "test_hard")
    assert found.splits["train"][0] == ("the dog sleeps. de", "the dog sleeps. fr")
    assert corpus.read_folder(tmp_path, "de-fr").test_name == "test"
    with pytest.raises(ConfigError, match=r"no train\.es; it has training text in de, en, fr"):
        corpus.read_folder(tmp_path, "en-es")
    with pytest.raises(ConfigError, match="not two languages"):
        corpus.read_folder(tmp_path, "en")
    with pytest.raises(ConfigError, match=r"no test set 'test_2'.*test, test_hard"):
        corpus.read_folder(tmp_path, "en-de", test="test_2")


def test_names_without_english_are_alphabetical(tmp_path):
    assert corpus.read_folder(fill(tmp_path, suffixes=("tgt", "src"))).source == "src"
    other = tmp_path / "other"
    other.mkdir()
    assert corpus.read_folder(fill(other, suffixes=("fr", "de"))).source == "de"


def test_pairs_with_an_empty_side_are_dropped(tmp_path):
    fill(tmp_path)
    (tmp_path / "train.en").write_text("one\n\nthree\n  \n", encoding="utf-8")
    found = corpus.read_folder(tmp_path)
    assert [source for source, _ in found.splits["train"]] == ["one", "three"]
    assert found.dropped == 2


def wrong_inputs():
    def lines(folder):
        (folder / "train.en").write_text("one line\n", encoding="utf-8")

    def empty(folder):
        for suffix in ("en", "de"):
            (folder / f"val.{suffix}").write_text("", encoding="utf-8")

    def missing(folder):
        (folder / "val.de.gz").unlink()

    def no_train(folder):
        (folder / "train.de.gz").unlink()

    def latin1(folder):
        (folder / "train.en").write_bytes("café\n".encode("latin-1") * 4)

    def cut(folder):
        (folder / "test_2016_flickr.en.gz").write_bytes((folder / "train.en.gz").read_bytes()[:40])

    return [
        (lines, "train.en has 1 lines and train.de has 4"),
        (empty, "the valid set .val. is empty"),
        (missing, "no valid set in en and de: expected files .* found .*val.en.gz"),
        (no_train, "found train in en"),
        (latin1, "train.en is not UTF-8"),
        (cut, "no complete gzip file"),
    ]


@pytest.mark.parametrize(("spoil", "message"), wrong_inputs(), ids=lambda value: getattr(value, "__name__", ""))
def test_wrong_folders_are_one_line_errors(tmp_path, spoil, message):
    spoil(fill(tmp_path))
    with pytest.raises(NasExtError, match=message) as caught:
        corpus.read_folder(tmp_path)
    assert "\n" not in str(caught.value)


def test_no_folder_and_no_corpus(tmp_path):
    with pytest.raises(DataError, match="no folder"):
        corpus.read_folder(tmp_path / "absent")
    with pytest.raises(DataError, match="found no train file"):
        corpus.read_folder(tmp_path)


def test_words_can_be_put_together_again():
    words = Words()
    assert words.encode("Don't go (now).") == ["Don", "‿'", "‿t", "go", "(", "‿now", "‿)", "‿."]
    for sentence in [*SENTENCES, *(s for pair in corpus.embedded(200, 5, 5).splits["train"] for s in pair)]:
        assert words.decode(words.encode(sentence)) == " ".join(sentence.split())


def test_subwords_are_reversible_and_shrink_with_the_corpus(tmp_path):
    text = [side for pair in corpus.embedded(400, 5, 5).splits["train"] for side in pair]
    pieces = Subwords.learn(text, 6000, tmp_path / "subwords.model")
    assert 300 < pieces.size < 1000
    loaded = Subwords.load(tmp_path / "subwords.model")
    for sentence in [*text, "unbekannte Wörter, ½ so schön!"]:
        assert loaded.decode(loaded.encode(sentence)) == sentence
    with pytest.raises(DataError, match="its characters alone are"):
        Subwords.learn(text, 20, tmp_path / "few.model")


@pytest.mark.parametrize("subwords", [0, 500])
def test_written_corpus(tmp_path, subwords):
    about = corpus.write(corpus.embedded(300, 20, 20), tmp_path, subwords)
    assert about["pairs"] == {"train": 300, "valid": 20, "test": 20}
    assert bool(about["subwords"]) == bool(subwords)
    segmenter = corpus.segmenter_of(tmp_path)
    for split in corpus.SPLITS:
        for suffix in ("en", "de"):
            tokens = (tmp_path / f"{split}.{suffix}").read_text(encoding="utf-8").splitlines()
            raw = (tmp_path / "raw" / f"{split}.{suffix}").read_text(encoding="utf-8").splitlines()
            assert [segmenter.decode(line.split()) for line in tokens] == raw
    assert 8 < int(about["source_length"]) < 60
