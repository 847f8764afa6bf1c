"""Translations of a test set: read from ``fairseq-generate``, put together, scored, and chosen for show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from examples.demo.corpus import segmenter_of
from nas_core.errors import DataError
from nas_core.optional import require


def hypotheses(generated: str, corpus: Path, count: int) -> list[str]:
    """The best hypothesis of each test sentence as plain text, in the order of the test set.

    Args:
        generated: output of ``fairseq-generate``, run without removal of subwords. corpus: the segmented corpus.
        count: sentences of the test set.

    Raises:
        DataError: a sentence has no translation.
    """
    segmenter = segmenter_of(corpus)
    found: dict[int, str] = {}
    for line in generated.splitlines():
        if line.startswith("H-"):
            name, _, tokens = line.split("\t", 2)
            found[int(name[2:])] = segmenter.decode(tokens.split())
    missing = [index for index in range(count) if index not in found]
    if missing:
        raise DataError(f"{len(missing)} of {count} test sentences have no translation, the first is {missing[0] + 1}")
    return [found[index] for index in range(count)]


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def bleu(translated: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """BLEU of plain text, and sacrebleu's signature, which says how it was computed."""
    require("sacrebleu", "scoring translations", "fairseq")
    from sacrebleu.metrics import BLEU

    metric = BLEU()
    score = metric.corpus_score(list(translated), [list(references)]).score
    return float(score), str(metric.get_signature())


def telling_examples(
    outputs: Mapping[str, Sequence[str]], references: Sequence[str], count: int, words: int = 16
) -> list[int]:
    """Indices of sentences that show what the models differ in: first those that the last model gets right and the
    first one gets wrong, then sentences the models disagree on, then any; neither very short nor very long ones."""
    first, *_, last = outputs.values()

    def interest(index: int) -> tuple[int, int]:
        reference = references[index]
        length = len(reference.split())
        readable = 6 <= length <= words
        right = last[index] == reference
        different = len({output[index] for output in outputs.values()})
        return (readable * 4 + (right and first[index] != reference) * 2 + (different > 1), different)

    return sorted(sorted(range(len(references)), key=interest, reverse=True)[:count])
