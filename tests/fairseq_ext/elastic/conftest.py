"""Networks of fairseq's own ``--arch transformer``, of every form that can be converted."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

SIZES = ["--encoder-layers", 2, "--decoder-layers", 2, "--encoder-embed-dim", 16, "--decoder-embed-dim", 16,
         "--encoder-ffn-embed-dim", 24, "--decoder-ffn-embed-dim", 32,
         "--encoder-attention-heads", 4, "--decoder-attention-heads", 4]  # fmt: skip
PRE_NORM = ["--encoder-normalize-before", "--decoder-normalize-before"]
FORMS: dict[str, list[object]] = {
    "post-norm": [],
    "pre-norm": [*PRE_NORM, "--share-decoder-input-output-embed", "--activation-fn", "gelu", "--no-scale-embedding"],
    "learned": ["--encoder-learned-pos", "--decoder-learned-pos", "--share-all-embeddings",
                "--activation-fn", "gelu_accurate", "--max-source-positions", 40, "--max-target-positions", 50],
    "unequal": [*PRE_NORM, "--encoder-embed-dim", 24, "--encoder-attention-heads", 6, "--activation-fn", "tanh",
                "--no-token-positional-embeddings"],
}  # fmt: skip
"""Options of ``fairseq-train``."""


@pytest.fixture(scope="session")
def transformer(joined: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``transformer(options)``: the checkpoint of such a network after one update, all its weights random."""
    from tests.fairseq_ext.running import passed, randomised  # not above: a plain machine reads this file too

    @cache
    def checkpoint(*options: object, arch: str = "transformer") -> Path:
        folder = tmp_path_factory.mktemp("transformer")
        passed(
            "train", joined, "--arch", arch, *SIZES, *options, "--optimizer", "adam", "--batch-size", 64,
            "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1, "--max-update", 1,
            "--cpu", "--num-workers", 0, "--disable-validation", "--distributed-world-size", 1,
            "--save-dir", folder, "--dropout", 0.1,
        )  # fmt: skip
        return randomised(folder / "checkpoint_last.pt")

    return checkpoint
