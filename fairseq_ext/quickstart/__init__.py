"""Quickstart project with a small synthetic corpus, for ``nas-ext quickstart translation``."""

from __future__ import annotations

from collections.abc import Mapping

from fairseq_ext.quickstart.corpus import corpus
from nas_core.quickstart import Quickstart

SIZES = {"test": 100, "valid": 200, "train": 4000}


class TranslationQuickstart(Quickstart):
    """Quickstart project that searches an English-German translation network with fairseq."""

    name = "translation"
    purpose = "search a fast translation network, from a parallel corpus to translated sentences"
    templates = "fairseq_ext/quickstart/templates"
    script = "run.sh"
    modules = ("fairseq", "sacrebleu")
    extra = "fairseq"
    minutes = 3.0

    def data(self) -> Mapping[str, str | bytes]:
        written = {}
        for split, pairs in corpus(SIZES, words=0.5, clauses=1).items():
            for side, language in enumerate(("en", "de")):
                written[f"corpus/{split}.{language}"] = "".join(f"{pair[side]}\n" for pair in pairs)
        return written


TRANSLATION = TranslationQuickstart()
