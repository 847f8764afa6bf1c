"""What tests of teachers share: options of a criterion, and a small model of fairseq's own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fairseq_ext.distillation import DistilledLabelSmoothedCrossEntropy
from tests.fairseq_ext.running import run

CRITERION = ["--criterion", "distilled_label_smoothed_cross_entropy"]
SANDWICH = ["--task", "supernet_translation", "--sampling", "sandwich"]
PLAIN: list[object] = [
    "--arch", "transformer", "--encoder-embed-dim", 16, "--decoder-embed-dim", 16, "--encoder-ffn-embed-dim", 32,
    "--decoder-ffn-embed-dim", 32, "--encoder-layers", 1, "--decoder-layers", 1, "--encoder-attention-heads", 2,
    "--decoder-attention-heads", 2, "--optimizer", "adam", "--lr", 0.01, "--batch-size", 16, "--cpu",
    "--num-workers", 0, "--no-epoch-checkpoints", "--distributed-world-size", 1, "--log-format", "json",
    "--log-interval", 1,
]  # fmt: skip
"""fairseq's transformer, as small as it can be."""


def train_plain(corpus: Path, folder: Path, *options: object) -> Path:
    """A checkpoint of it."""
    done = run("train", corpus, *PLAIN, "--max-update", 20, *options, "--save-dir", folder)
    assert done.code == 0, done.err
    return folder / "checkpoint_last.pt"


def options(teacher: object, **changed: Any) -> Any:
    """Settings of the criterion for translation."""
    settings = {
        "teacher": str(teacher), "distill_weight": 0.5, "distill_temperature": 1.0, "distill_hidden": 0.0,
        "distill_attention": 0.0, "teacher_cache": None, "teacher_top_k": 0, "label_smoothing": 0.1,
        "sentence_avg": False, "ignore_prefix_size": 0, "report_accuracy": False,
    }  # fmt: skip
    return SimpleNamespace(**{**settings, **changed})


def criterion(task: Any, teacher: object, **changed: Any) -> DistilledLabelSmoothedCrossEntropy:
    """The criterion for translation."""
    return DistilledLabelSmoothedCrossEntropy(task, options(teacher, **changed))
