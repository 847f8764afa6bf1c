"""Quickstart project with a small synthetic corpus, for ``nas-ext quickstart translation``."""

from __future__ import annotations

from collections.abc import Mapping

from fairseq_ext.quickstart.corpus import corpus
from nas_core.quickstart import Quickstart

SIZES = {"test": 100, "valid": 200, "train": 4000}


def data() -> Mapping[str, str | bytes]:
    """Return a synthetic English-German corpus."""
    written = {}
    for split, pairs in corpus(SIZES, words=0.5, clauses=1).items():
        for side, language in enumerate(("en", "de")):
            written[f"corpus/{split}.{language}"] = "".join(f"{pair[side]}\n" for pair in pairs)
    return written


TRANSLATION = Quickstart(
    "translation", "search a fast translation network, from a parallel corpus to translated sentences",
    "fairseq_ext/quickstart/templates", data, modules=("fairseq", "sacrebleu"), extra="fairseq", minutes=3.0,
)  # fmt: skip
