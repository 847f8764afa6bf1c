"""Text into tokens and back: words with punctuation split off, or subword pieces learnt by sentencepiece."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from nas_core.errors import DataError
from nas_core.files import write_atomic
from nas_core.optional import require

TIE = "‿"
"""Marks a token that follows the one before it without a space, so that words can be put together again."""
_WORDS_PER_PIECE = 20
"""A piece should be seen about this often: a small corpus gets a smaller vocabulary."""
_FEWEST = 500


class Segmenter(Protocol):
    """Reversible: ``decode(encode(line)) == line`` for lines with single spaces."""

    def encode(self, line: str) -> list[str]: ...

    def decode(self, tokens: Sequence[str]) -> str: ...


class Words:
    """Words and single punctuation marks, for small vocabularies of closed languages."""

    def encode(self, line: str) -> list[str]:
        tokens = []
        for match in re.finditer(r"\w+|[^\w\s]", line):
            attached = match.start() > 0 and not line[match.start() - 1].isspace()
            tokens.append((TIE if attached else "") + match.group())
        return tokens

    def decode(self, tokens: Sequence[str]) -> str:
        return " ".join(tokens).replace(f" {TIE}", "")


class Subwords:
    """Byte-pair pieces of one sentencepiece model for both languages."""

    def __init__(self, model: bytes) -> None:
        sentencepiece = require("sentencepiece", "subword segmentation", "fairseq")
        self._pieces = sentencepiece.SentencePieceProcessor(model_proto=model)

    @property
    def size(self) -> int:
        return int(self._pieces.get_piece_size())

    def encode(self, line: str) -> list[str]:
        return list(self._pieces.encode(line, out_type=str))

    def decode(self, tokens: Sequence[str]) -> str:
        return "".join(tokens).replace("▁", " ").strip()

    @classmethod
    def load(cls, path: Path) -> Subwords:
        return cls(path.read_bytes())

    @classmethod
    def learn(cls, lines: Iterable[str], size: int, path: Path) -> Subwords:
        """Learn ``size`` pieces, or fewer from a small corpus, and keep the model at ``path``.

        Raises:
            DataError: the corpus has more different characters than pieces were asked for.
        """
        sentencepiece = require("sentencepiece", "subword segmentation", "fairseq")
        text = list(lines)
        size = min(size, max(_FEWEST, sum(len(line.split()) for line in text) // _WORDS_PER_PIECE))
        while True:
            model = io.BytesIO()
            try:
                sentencepiece.SentencePieceTrainer.train(
                    sentence_iterator=iter(text),
                    model_writer=model,
                    model_type="bpe",
                    vocab_size=size,
                    character_coverage=1.0,
                    normalization_rule_name="identity",
                    num_threads=2,
                    minloglevel=3,
                )
                break
            except (RuntimeError, OSError) as error:
                most = re.search(r"value <= (\d+)", str(error))
                if not most or int(most.group(1)) >= size:
                    least = re.search(r"required_chars\. \d+ vs (\d+)", str(error))
                    reason = f"its characters alone are {least.group(1)}" if least else " ".join(str(error).split())
                    raise DataError(f"cannot learn {size} subwords ({reason}); give a larger number") from None
                size = int(most.group(1))
        write_atomic(path, model.getvalue())
        return cls(model.getvalue())
