"""What tests of teachers share: options of a criterion, and a small model of fairseq's own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from fairseq_ext.distillation.criterion import DistilledLabelSmoothedCrossEntropy
from tests.fairseq_ext.running import passed

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
    passed("train", corpus, *PLAIN, "--max-update", 20, *options, "--save-dir", folder)
    return folder / "checkpoint_last.pt"


def options(teacher: object, **changed: Any) -> Any:
    """Settings of the criterion for translation."""
    settings = {
        "teacher": str(teacher), "distill_weight": 0.5, "distill_temperature": 1.0, "label_smoothing": 0.1,
        "sentence_avg": False, "ignore_prefix_size": 0, "report_accuracy": False,
    }  # fmt: skip
    return SimpleNamespace(**{**settings, **changed})


def criterion(task: Any, teacher: object, **changed: Any) -> DistilledLabelSmoothedCrossEntropy:
    """The criterion for translation."""
    return DistilledLabelSmoothedCrossEntropy(task, options(teacher, **changed))


GONE: dict[str, object] = {"teacher": "gone.pt", "distill_weight": 0.5, "distill_temperature": 1.0}
"""Settings of a teacher whose file is no longer there."""


def as_distilled(path: Path, name: str) -> None:
    """A supernet's checkpoint as if it had been trained with that criterion and a teacher that is gone."""
    content = torch.load(path, weights_only=True)
    content["cfg"]["criterion"] = {**(content["cfg"]["criterion"] or {}), "_name": name, **GONE}
    vars(content["cfg"]["model"]).update(criterion=name, **GONE)
    content["cfg"]["task"]["valid_random"] = 2
    torch.save(content, path)


def left_of_teacher(path: Path) -> tuple[str, set[str]]:
    """The criterion of a checkpoint, and what its settings still have of a teacher and of a supernet's training."""
    groups = torch.load(path, weights_only=True)["cfg"]
    names = {*groups["criterion"], *getattr(groups["model"], "__dict__", groups["model"])} & set(GONE)
    return groups["criterion"]["_name"], names | ({*groups["task"]} & {"valid_random", "supernet_sampling"})
