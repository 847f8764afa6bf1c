"""English texts of Multi30k and WikiText-2 for models of transformers. NAS_EXT_DATA names the folder of the corpora."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from benchmarks.parts.published import DATA

_TOKENS = {" @-@ ": "-", " @,@ ": ",", " @.@ ": "."}
_PUNCTUATION = {" ,": ",", " .": ".", " ;": ";", " :": ":", " 's": "'s", " ( ": " (", " )": ")"}
_SHORTEST, _LONGEST = 15, 48
"""Words of a passage."""


def write_texts(task: str, folder: Path) -> None:
    """Write ``train.txt``, ``valid.txt`` and ``test_*.txt`` for a task of ``compress_trained``."""
    folder.mkdir(parents=True)
    for name, texts in (_encoder_texts() if task == "encoder" else _decoder_texts()).items():
        (folder / f"{name}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")


def _encoder_texts() -> dict[str, list[str]]:
    """Return captions of Multi30k and sentences of WikiText-2."""
    draw, captions = random.Random(0), {name: _captions(name) for name in ("train", "val", "test_2016_flickr")}
    sentences = {}
    for split in ("valid", "test"):
        lines = [_replace(line, _TOKENS) for line in chain.from_iterable(_articles(split))]
        texts = [text for line in lines for text in _sentences(line) if 6 <= len(text.split()) <= 50]
        sentences[split] = [text for text in texts if "<unk>" not in text]
    draw.shuffle(sentences["valid"])
    train, valid = captions["train"] + sentences["valid"][500:], captions["val"][:500] + sentences["valid"][:500]
    for texts in (train, valid, sentences["test"]):
        draw.shuffle(texts)
    tests = {"test_multi30k": captions["test_2016_flickr"], "test_wikitext": sentences["test"]}
    return {"train": train, "valid": valid, **tests}


def _decoder_texts() -> dict[str, list[str]]:
    """Return passages of WikiText-2. Two thirds of the test articles are training data, as its training split is not
    here.
    """
    draw = random.Random(0)
    valid, test = ([list(_passages(article)) for article in _articles(split)] for split in ("valid", "test"))
    valid, test = ([article for article in articles if article] for articles in (valid, test))
    kept = len(test) // 3
    parts = {"train": valid[8:] + test[kept:], "valid": valid[:8], "test_wikitext": test[:kept]}
    texts = {name: list(chain.from_iterable(articles)) for name, articles in parts.items()}
    for passages in texts.values():
        draw.shuffle(passages)
    return {**texts, "valid": texts["valid"][:160], "test_wikitext": texts["test_wikitext"][:300]}


def _passages(article: Sequence[str]) -> Iterator[str]:
    """Yield passages of consecutive sentences without unknown words."""
    for line in article:
        passage = list[str]()
        for raw in (*_sentences(line), None):
            sentence = None if raw is None or "<unk>" in raw else _quoted(_replace(raw, _TOKENS | _PUNCTUATION))
            words = 0 if sentence is None else len(sentence.split())
            if sentence is None or _words(passage) + words > _LONGEST:
                if _words(passage) >= _SHORTEST:
                    yield " ".join(passage)
                passage = []
            if sentence is not None and words <= _LONGEST:
                passage.append(sentence)


def _captions(name: str) -> list[str]:
    with gzip.open(DATA / "multi30k" / f"{name}.en.gz", "rt", encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]


def _articles(split: str) -> list[list[str]]:
    """Return the paragraphs of each article."""
    articles = list[list[str]]([[]])
    with gzip.open(DATA / "wikitext2" / f"{split}.txt.gz", "rt", encoding="utf-8") as file:
        for line in map(str.strip, file):
            if re.match("= [^=]", line):
                articles.append([])
            if line and not line.startswith("="):
                articles[-1].append(line)
    return articles


def _sentences(line: str) -> list[str]:
    return re.split("(?<= [.!?]) ", line)


def _replace(text: str, replaced: dict[str, str]) -> str:
    for old, new in replaced.items():
        text = text.replace(old, new)
    return text


def _quoted(text: str) -> str:
    return re.sub(' " (.*?) "', r' "\1"', text)


def _words(passage: Sequence[str]) -> int:
    return sum(len(sentence.split()) for sentence in passage)
