"""Sizes of measured training updates, and random batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PAD, EOS, WORDS = 1, 2, 4
"""Index of the padding, of the end of a sentence, and of the first word, as in fairseq."""


@dataclass(frozen=True)
class Size:
    space: str
    embed_dim: int
    ffn_dim: int
    layers: int
    heads: int
    vocabulary: int
    sentences: int
    length: tuple[int, int]
    """Shortest and longest sentence in tokens."""


SIZES = {
    "small": Size("hat_small", 128, 512, 3, 4, 6000, 212, (14, 18)),
    "wmt": Size("hat_wmt14_en_de", 512, 2048, 6, 8, 32768, 12, (25, 30)),
    "tiny": Size("hat_small", 128, 512, 3, 4, 200, 4, (4, 6)),
}
"""``tiny`` is for tests."""


@dataclass(frozen=True)
class Batch:
    """Random sentences (B, T), padded as in fairseq: source on the left, target on the right."""

    source: NDArray[np.int64]
    previous: NDArray[np.int64]
    target: NDArray[np.int64]
    lengths: NDArray[np.int64]


def batch_of(size: Size) -> Batch:
    """Return the batch of a size, equal in each call."""
    stream = np.random.default_rng(0)
    lengths = stream.integers(size.length[0], size.length[1] + 1, size.sentences)
    max_length = int(lengths.max())
    rows = [stream.integers(WORDS, size.vocabulary, length) for length in lengths]
    source, previous, target = (np.full((size.sentences, max_length), PAD) for _ in range(3))
    for index, row in enumerate(rows):
        source[index, max_length - len(row) :] = row
        target[index, : len(row)] = [*row[1:], EOS]
        previous[index, : len(row)] = [EOS, *row[1:]]
    return Batch(source, previous, target, lengths)
