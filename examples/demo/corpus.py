"""A parallel corpus on disk: found in a user's folder or drawn from the embedded grammar, checked and segmented."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from examples.demo.segment import Segmenter, Subwords, Words
from fairseq_ext.quickstart.language import grammar
from nas_core.errors import ConfigError, DataError
from nas_core.files import write_atomic, write_json

Pair = tuple[str, str]
SPLITS = ("train", "valid", "test")
MAX_TOKENS = 256
"""Longer training sentences are left out."""
_NAME = re.compile(r"(train|val|valid|test[^.]*)\.([^.]+)(\.gz)?")
_EXPECTED = "expected files train|val|test*.{src,tgt}, plain or .gz, such as train.en.gz and train.de.gz"


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs of each split, as plain text."""

    source: str
    """File suffix of the source language, as in ``train.en``."""
    target: str
    splits: dict[str, list[Pair]]
    test_name: str = "test"
    dropped: int = 0
    """Pairs left out because one side was empty."""


def embedded(
    train: int = 30_000, valid: int = 400, test: int = 500, seed: int = 1, words: int = grammar.MAX_WORDS
) -> Corpus:
    """The grammar's corpus, of sentences with at most so many words; tokens that follow without a space in print do so
    here (``der Hund schläft.``)."""
    pairs = grammar.corpus({"train": train, "valid": valid, "test": test}, seed, words)
    splits = {name: [(_printed(source), _printed(target)) for source, target in pairs[name]] for name in SPLITS}
    return Corpus("en", "de", splits)


def _printed(sentence: str) -> str:
    return re.sub(r" ([.,?])", r"\1", sentence)


def read_folder(folder: Path, direction: str = "", test: str = "", lower: bool = False) -> Corpus:
    """The corpus in a folder of line-aligned files.

    Args:
        folder: holds ``train``, ``val`` or ``valid``, and ``test*``, each with the same two suffixes.
        direction: ``en-de``; default: from English if it is one of the two, else in alphabetical order.
        test: which test set, if there are several (``test_2016_flickr``); default: the first by name.
        lower: lower-case everything.

    Raises:
        DataError: a split is missing, empty, not UTF-8, or its two sides differ in length.
        ConfigError: the direction names a language that is not there.
    """
    files = _files(folder)
    source, target = _direction(folder, files, direction)
    complete = sorted({name for name, suffix in files if {(name, source), (name, target)} <= files.keys()})
    tests = [name for name in complete if name.startswith("test")]
    if test and test not in tests:
        there = ", ".join(tests) or "none"
        raise ConfigError(f"{folder} has no test set {test!r} in {source} and {target}; it has {there}")
    chosen = {
        "train": "train",
        "valid": "valid" if "valid" in complete else "val",
        "test": test or next(iter(tests), "test"),
    }
    dropped = 0
    splits: dict[str, list[Pair]] = {}
    for split, name in chosen.items():
        if name not in complete:
            found = ", ".join(sorted(path.name for path in files.values())) or "none"
            raise DataError(f"{folder} has no {split} set in {source} and {target}: {_EXPECTED}; found {found}")
        left, right = (_lines(files[name, suffix], lower) for suffix in (source, target))
        if len(left) != len(right):
            raise DataError(
                f"{folder}: {name}.{source} has {len(left)} lines and {name}.{target} has {len(right)};"
                " line n of one has to be the translation of line n of the other"
            )
        splits[split] = [(a, b) for a, b in zip(left, right, strict=True) if a and b]
        dropped += len(left) - len(splits[split])
        if not splits[split]:
            raise DataError(f"{folder}: the {split} set ({name}) is empty; give at least one pair of sentences")
    return Corpus(source, target, splits, chosen["test"], dropped)


def _files(folder: Path) -> dict[tuple[str, str], Path]:
    if not folder.is_dir():
        raise DataError(f"no folder {folder}; give one with a parallel corpus, {_EXPECTED}")
    files: dict[tuple[str, str], Path] = {}
    for path in sorted(folder.iterdir(), reverse=True):  # x.en.gz before x.en: the plain file wins
        match = _NAME.fullmatch(path.name)
        if match and path.is_file():
            files[match.group(1), match.group(2)] = path
    return files


def _direction(folder: Path, files: dict[tuple[str, str], Path], direction: str) -> tuple[str, str]:
    suffixes = sorted({suffix for name, suffix in files if name == "train"})
    if direction:
        source, _, target = direction.partition("-")
        if not target or source == target:
            raise ConfigError(f"direction {direction!r} is not two languages; give them as in en-de")
        for suffix in (source, target):
            if suffix not in suffixes:
                there = ", ".join(suffixes) or "none"
                raise ConfigError(f"{folder} has no train.{suffix}; it has training text in {there}")
        return source, target
    if len(suffixes) != 2:
        found = f"found train in {', '.join(suffixes)}" if suffixes else "found no train file"
        hint = "; say which two with --direction, as in en-de" if len(suffixes) > 2 else ""
        raise DataError(f"{folder} is no parallel corpus: {_EXPECTED}; {found}{hint}")
    first = next((suffix for suffix in ("src", "en") if suffix in suffixes), suffixes[0])
    return first, next(suffix for suffix in suffixes if suffix != first)


def _lines(path: Path, lower: bool) -> list[str]:
    """Lines with single spaces; only line feeds end a line, whatever other separators the text has."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 (byte {error.start}); convert it") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DataError(f"{path} is no complete gzip file; compress it again, or give it without .gz") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    lines = [" ".join(line.split()) for line in text.removesuffix("\n").split("\n")] if text else []
    return [line.lower() for line in lines] if lower else lines


def write(corpus: Corpus, folder: Path, subwords: int) -> dict[str, object]:
    """Segment the corpus and write ``<split>.<suffix>`` (tokens) and ``raw/<split>.<suffix>`` (text) into ``folder``.

    ``subwords`` is the size of the joint vocabulary of pieces; 0 keeps words. Returns what ``corpus.json`` holds.
    """
    segmenter: Segmenter = Words()
    size = 0
    if subwords:
        lines = (side for pair in corpus.splits["train"] for side in pair)
        segmenter = pieces = Subwords.learn(lines, subwords, folder / "subwords.model")
        size = pieces.size
    counts = {}
    for name in SPLITS:
        tokens = [(segmenter.encode(source), segmenter.encode(target)) for source, target in corpus.splits[name]]
        if name == "train":
            tokens = [pair for pair in tokens if max(map(len, pair)) <= MAX_TOKENS]
        counts[name] = len(tokens)
        for side, suffix in enumerate((corpus.source, corpus.target)):
            _write(folder / f"{name}.{suffix}", (" ".join(pair[side]) for pair in tokens))
            _write(folder / "raw" / f"{name}.{suffix}", (pair[side] for pair in corpus.splits[name]))
    lengths = [[len(segmenter.encode(pair[side])) for pair in corpus.splits["valid"]] for side in (0, 1)]
    about = {
        "source": corpus.source,
        "target": corpus.target,
        "test_set": corpus.test_name,
        "pairs": counts,
        "dropped_empty": corpus.dropped,
        "subwords": size,
        "source_length": round(sum(lengths[0]) / len(lengths[0])) + 1,  # one more for the end of the sentence
        "target_length": round(sum(lengths[1]) / len(lengths[1])) + 1,
    }
    write_json(folder / "corpus.json", about)
    return about


def segmenter_of(folder: Path) -> Segmenter:
    """The segmenter a corpus was written with."""
    model = folder / "subwords.model"
    return Subwords.load(model) if model.exists() else Words()


def _write(path: Path, lines: Iterable[str]) -> None:
    write_atomic(path, "".join(f"{line}\n" for line in lines))
