"""Estimates of supernets of encoders, on two small corpora."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.page.results import Results
from benchmarks.page.section import Section
from benchmarks.page.sections.trust.methods import centred, changes, compared, methods, told
from benchmarks.page.words import count, fixed, joined, spread

__all__ = ["SECTIONS"]

NAME = "bert_trust"
CORPORA = {"wikitext2": "WikiText-2", "tinyshakespeare": "tiny Shakespeare"}


def _bert(results: Results) -> Mapping[str, str]:
    content = results[NAME]
    tables, changed = [], []
    for name, alone in content["standalone"].items():
        losses = [each["loss"] for each in alone]
        found = methods((row for row in content["rows"] if row["corpus"] == name), losses)
        corpus = CORPORA.get(name, name)
        tables.append(compared(found, corpus))
        changed.append(
            f"On {corpus} standalone losses are {spread(losses, 3)}, and to say their average is a centred error of"
            f" {fixed(centred(losses), 3)}; the error changes by {told(changes(found, 'error'))}, centred by"
            f" {told(changes(found, 'centred'))}."
        )
    return {
        "tables": "\n\n".join(tables), "changes": " ".join(changed), "space": content["space"],
        "updates": count(content["updates"]), "tokens": count(content["tokens"]),
        "networks": joined(dict.fromkeys(count(len(alone)) for alone in content["standalone"].values())),
    }  # fmt: skip


SECTIONS = [Section("Estimates of BERT supernets", (NAME,), _bert, optional=True)]
