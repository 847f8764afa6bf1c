"""The quickstart of translation."""

from __future__ import annotations

import re
from collections import Counter

from fairseq_ext.quickstart import TRANSLATION
from fairseq_ext.quickstart.short import short_corpus
from tests.contracts.quickstart import QuickstartContract


class TestTranslation(QuickstartContract):
    quickstart = TRANSLATION
    small = {"UPDATES": "4", "SAMPLES": "16", "EVALUATIONS": "4"}
    says = r"BLEU \d+\.\d\d at \d+\.\d ms a sentence, measured here; all networks tried: out/run/report.html"
    makes = ("out/bin", "out/supernet/checkpoint_last.pt", "out/latency.json", "out/run/report.html", "out/subnet.pt")


def test_the_corpus_is_short_sentences_of_few_words_in_three_splits_apart() -> None:
    corpus = short_corpus({"test": 50, "valid": 50, "train": 1000})
    english = [pair[0] for pairs in corpus.values() for pair in pairs]
    assert len(set(english)) == len(english) == 1100
    for side in (0, 1):
        words = Counter(word for pair in corpus["train"] for word in pair[side].split())
        assert 60 < len(words) < 300
        assert all(2 <= len(pair[side].split()) <= 9 for pair in corpus["train"])
        assert all(re.fullmatch(r"[^\W\d]+( [^\W\d]+)* \.", pair[side]) for pair in corpus["train"])
    assert corpus == short_corpus({"test": 50, "valid": 50, "train": 1000})
    assert corpus != short_corpus({"test": 50, "valid": 50, "train": 1000}, seed=2)
