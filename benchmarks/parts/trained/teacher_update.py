"""What one training update of a supernet costs with a teacher, against the same update without one.

An update is fairseq's: the task's training step, gradients scaled and clipped, Adam; the loss is the fused
label-smoothed one, so that what is compared is the teacher alone. The teacher is fairseq's plain ``transformer`` of the
largest subnet's sizes. All contestants take turns, one update each, on the same batch and with the same subnets.

- ``none``: no teacher.
- ``teacher``: a checkpoint, all words compared.
- ``cached``: what it said is on disk, 32 words of each token.
- ``largest``: in the sandwich the largest subnet teaches the others.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from fairseq.data import LanguagePairDataset, ListDataset
from fairseq.tasks.translation import TranslationTask

from benchmarks.parts.fairseq_update import optimizer_of, our_model, plain_arguments, plain_model, vocabulary
from benchmarks.parts.turns import middle, rounds
from benchmarks.parts.update_sizes import EOS, Size, batch_of
from fairseq_ext.criterion import FusedLabelSmoothedCrossEntropy
from fairseq_ext.distillation.criterion import DistilledLabelSmoothedCrossEntropy
from fairseq_ext.model import TranslationModel
from fairseq_ext.task import SupernetTask

AIMS = {"teacher": 1.5, "cached": 1.1}
"""How many times as long as without a teacher an update may take."""
_OPTIONS = {
    "distill_weight": 0.5, "distill_temperature": 1.0, "distill_hidden": 0.0, "distill_attention": 0.0,
    "teacher_cache": None, "teacher_top_k": 0, "label_smoothing": 0.1, "sentence_avg": False, "ignore_prefix_size": 0,
    "report_accuracy": False,
}  # fmt: skip


class Training(SupernetTask, TranslationTask):  # type: ignore[misc]
    """The task of supernets on random sentences."""

    model_type = TranslationModel
    advice = ""


def task_of(size: Size, folder: Path, sampling: str) -> Training:
    """A task whose training data is the batch of a size."""
    words = vocabulary(size).dictionary
    for language in ("en", "de"):
        words.save(str(folder / f"dict.{language}.txt"))
    words = words.load(str(folder / "dict.en.txt"))
    config = SimpleNamespace(
        data=str(folder), supernet_sampling=sampling, source_lang="en", target_lang="de", mos_apart=0.0
    )
    task = Training(config, words, words)
    batch = batch_of(size)
    rows = [torch.tensor([*row[: length - 1], EOS]) for row, length in zip(batch.target, batch.lengths, strict=True)]
    data = ListDataset(rows, batch.lengths)
    task.datasets["train"] = LanguagePairDataset(
        data, batch.lengths, words, data, batch.lengths, words, left_pad_source=True, left_pad_target=False
    )
    return task


def save_teacher(size: Size, task: Training, path: Path) -> None:
    """A checkpoint of fairseq's transformer with random weights, as its trainer writes it."""
    arguments = plain_arguments(size)
    vars(arguments).update(arch="transformer", task="translation")
    settings = {"_name": "translation", "data": task.cfg.data, "source_lang": "en", "target_lang": "de"}
    history = {"num_updates": 1, "criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}}
    torch.save(
        {
            "args": None, "cfg": {"model": arguments, "task": settings, "criterion": {"_name": "cross_entropy"}},
            "model": plain_model(size, task).state_dict(), "criterion": None,
            "optimizer_history": [history], "task_state": {},
            "extra_state": {}, "last_optimizer_state": None,
        },
        path,
    )  # fmt: skip


def criteria(task: Training, teacher: Path, folder: Path, sampling: str) -> dict[str, Any]:
    """The loss of each contestant."""
    options = {
        "teacher": {"teacher": str(teacher)},
        "cached": {"teacher": str(teacher), "teacher_cache": str(folder / f"cache-{sampling}")},
        **({"largest": {"teacher": "largest"}} if sampling == "sandwich" else {}),
    }
    plain = FusedLabelSmoothedCrossEntropy(task, sentence_avg=False, label_smoothing=0.1)
    return {
        "none": plain,
        **{
            name: DistilledLabelSmoothedCrossEntropy(task, SimpleNamespace(**{**_OPTIONS, **given}))
            for name, given in options.items()
        },
    }


def update_of(task: Training, size: Size, criterion: Any, batch: dict[str, Any]) -> Callable[[], None]:
    """One update; the number of the update, and so the random subnet, is the same for all contestants of a round."""
    torch.manual_seed(1)
    model = our_model(size, task, "none")
    optimizer, counted = optimizer_of(model), [0]

    def update() -> None:
        counted[0] += 1
        optimizer.zero_grad()
        criterion.train()
        _, tokens, _ = task.train_step(batch, model, criterion, optimizer, counted[0])
        optimizer.multiply_grads(1.0 / tokens)
        optimizer.clip_grad_norm(1.0)
        optimizer.step()

    return update


def measure(size: Size, repeats: int) -> dict[str, Any]:
    """Milliseconds of an update for each way of sampling, and how many times as long as without a teacher, each as
    median with the middle half of all rounds."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for sampling in ("sandwich", "spos"):
            task = task_of(size, folder, sampling)
            dataset = task.datasets["train"]
            batch = dataset.collater([dataset[index] for index in range(len(dataset))])
            teacher = folder / "teacher.pt"
            save_teacher(size, task, teacher)
            losses = criteria(task, teacher, folder, sampling)
            updates = {each: update_of(task, size, loss, batch) for each, loss in losses.items()}
            taken = {each: np.array(seconds) for each, seconds in rounds(updates, repeats, sampling).items()}
            ratios = {each: middle(taken[each] / taken["none"], 3) for each in taken if each != "none"}
            found[sampling] = {
                "update_ms": {each: middle(1000 * seconds, 1) for each, seconds in taken.items()},
                "times_none": ratios,
                "reached": {each: ratios[each]["median"] <= aim for each, aim in AIMS.items()},
            }
            found["target_tokens"] = int(batch["ntokens"])
    return {**found, "vocabulary": size.vocabulary, "aims": AIMS, "repeats": repeats}
