"""Cost of a teacher in a training update of a supernet.

``python -m benchmarks teacher_update [--size small] [--threads 1] [--repeats 30] [--sentences N]`` on the CPU. An
update is fairseq's training step with gradient clipping, Adam and the fused label-smoothed loss. The teacher is
fairseq's ``transformer`` of the largest subnet's sizes. Rows alternate on the same batch and subnets.

- ``none``: no teacher.
- ``teacher``: a checkpoint.
- ``largest``: in the sandwich, the largest subnet is the teacher of the others.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from fairseq.data import LanguagePairDataset, ListDataset
from fairseq.tasks.translation import TranslationTask

from benchmarks.parts.fairseq_update import (
    fairseq_arguments,
    fairseq_model,
    optimizer_of,
    project_model,
    version,
    vocabulary,
)
from benchmarks.parts.record import command, write_result
from benchmarks.parts.timing import quartiles, time_rounds
from benchmarks.parts.update_sizes import EOS, SIZES, Size, batch_of
from fairseq_ext.criterion import FusedLabelSmoothedCrossEntropy
from fairseq_ext.distillation.criterion import DistilledLabelSmoothedCrossEntropy
from fairseq_ext.model import TranslationModel
from fairseq_ext.task import SupernetTask
from nas_core.latency.machine import describe_machine

RESULT = Path(__file__).parents[1] / "results" / "teacher_update.json"
AIMS = {"teacher": 1.5}
"""Largest accepted ratio to an update without teacher."""
_OPTIONS = {
    "distill_weight": 0.5, "distill_temperature": 1.0, "label_smoothing": 0.1, "sentence_avg": False,
    "ignore_prefix_size": 0, "report_accuracy": False,
}  # fmt: skip


class Training(SupernetTask, TranslationTask):  # type: ignore[misc]
    """Supernet task of fairseq on random sentences."""

    model_type = TranslationModel
    advice = ""


def task_of(size: Size, folder: Path, sampling: str) -> Training:
    dictionary = vocabulary(size).dictionary
    for language in ("en", "de"):
        dictionary.save(str(folder / f"dict.{language}.txt"))
    dictionary = dictionary.load(str(folder / "dict.en.txt"))
    config = SimpleNamespace(data=str(folder), supernet_sampling=sampling, source_lang="en", target_lang="de")
    task = Training(config, dictionary, dictionary)
    batch = batch_of(size)
    rows = [torch.tensor([*row[: length - 1], EOS]) for row, length in zip(batch.target, batch.lengths, strict=True)]
    data = ListDataset(rows, batch.lengths)
    task.datasets["train"] = LanguagePairDataset(
        data, batch.lengths, dictionary, data, batch.lengths, dictionary, left_pad_source=True, left_pad_target=False
    )
    return task


def save_teacher(size: Size, task: Training, path: Path) -> None:
    arguments = fairseq_arguments(size)
    vars(arguments).update(arch="transformer", task="translation")
    settings = {"_name": "translation", "data": task.cfg.data, "source_lang": "en", "target_lang": "de"}
    history = {"num_updates": 1, "criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}}
    torch.save(
        {
            "args": None, "cfg": {"model": arguments, "task": settings, "criterion": {"_name": "cross_entropy"}},
            "model": fairseq_model(size, task).state_dict(), "criterion": None,
            "optimizer_history": [history], "task_state": {},
            "extra_state": {}, "last_optimizer_state": None,
        },
        path,
    )  # fmt: skip


def criteria(task: Training, teacher: Path, sampling: str) -> dict[str, Any]:
    options = {
        "teacher": {"teacher": str(teacher)},
        **({"largest": {"teacher": "largest"}} if sampling == "sandwich" else {}),
    }
    plain = FusedLabelSmoothedCrossEntropy(task, sentence_avg=False, label_smoothing=0.1)
    return {
        "none": plain,
        **{
            name: DistilledLabelSmoothedCrossEntropy(task, SimpleNamespace(**{**_OPTIONS, **teacher_options}))
            for name, teacher_options in options.items()
        },
    }


def update_of(task: Training, size: Size, criterion: Any, batch: dict[str, Any]) -> Callable[[], None]:
    torch.manual_seed(1)
    model = project_model(size, task, "none")
    optimizer, count = optimizer_of(model), [0]

    def update() -> None:
        count[0] += 1
        optimizer.zero_grad()
        criterion.train()
        _, tokens, _ = task.train_step(batch, model, criterion, optimizer, count[0])
        optimizer.multiply_grads(1.0 / tokens)
        optimizer.clip_grad_norm(1.0)
        optimizer.step()

    return update


def measure(size: Size, repeats: int) -> dict[str, Any]:
    """Return milliseconds of an update, and ratios to no teacher, by sampling: medians and quartiles over rounds."""
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for sampling in ("sandwich", "spos"):
            task = task_of(size, folder, sampling)
            dataset = task.datasets["train"]
            batch = dataset.collater([dataset[index] for index in range(len(dataset))])
            teacher = folder / "teacher.pt"
            save_teacher(size, task, teacher)
            losses = criteria(task, teacher, sampling)
            updates = {name: update_of(task, size, loss, batch) for name, loss in losses.items()}
            durations = {name: np.array(seconds) for name, seconds in time_rounds(updates, repeats, sampling).items()}
            ratios = {name: quartiles(durations[name] / durations["none"], 3) for name in durations if name != "none"}
            result[sampling] = {
                "update_ms": {name: quartiles(1000 * seconds, 1) for name, seconds in durations.items()},
                "times_none": ratios,
                "reached": {name: ratios[name]["median"] <= aim for name, aim in AIMS.items()},
            }
            result["target_tokens"] = int(batch["ntokens"])
    return {**result, "vocabulary": size.vocabulary, "aims": AIMS, "repeats": repeats}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="small", help="default: small")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument("--repeats", type=int, default=30, help="timed updates of each row")
    parser.add_argument("--sentences", type=int, help="sentences per batch; default: about 3,400 tokens")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)

    machine = {**describe_machine("cpu", options.threads), "fairseq": version()}
    size = SIZES[options.size]
    size = replace(size, sentences=options.sentences or size.sentences)
    result = {"size": options.size, **measure(size, options.repeats), "machine": machine}
    write_result(options.out, result, command(__file__, argv))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
