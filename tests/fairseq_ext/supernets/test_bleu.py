"""BLEU of a supernet's subnet, against that of the translations that fairseq-generate prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nas_core.supernet import open_supernet
from tests.fairseq_ext.running import SPACE, USER_DIR, run

sacrebleu = pytest.importorskip("sacrebleu", reason="needs sacrebleu: pip install 'nas-ext[fairseq]'")


def test_bleu_is_that_of_generated_translations(trained: Callable[[str], Path], corpus: Path) -> None:
    supernet = open_supernet(trained("layer"), valid_subset="test")
    supernet.add_metric("rouge")
    assert "bleu" not in supernet.evaluate(SPACE.smallest())
    supernet.add_metric("bleu")
    result = supernet.evaluate(SPACE.largest())
    assert result.keys() == {"loss", "nll_loss", "bleu"} and "bleu" in supernet.maximised

    decoding = ["--user-dir", USER_DIR, "--beam", 5, "--num-workers", 0, "--cpu"]
    done = run("generate", corpus, "--path", trained("layer"), *decoding)
    rows = [line.split("\t") for line in done.out.splitlines() if line.startswith("T-")]
    references = {int(number[2:]): text for number, text in rows}
    translations = {number: text for number, (_, text) in done.hypotheses().items()}
    assert len(references) == 20
    ordered = sorted(references)
    expected = sacrebleu.corpus_bleu(
        [translations[number] for number in ordered], [[references[number] for number in ordered]], tokenize="none"
    )
    assert 0 < result["bleu"] == pytest.approx(expected.score)
