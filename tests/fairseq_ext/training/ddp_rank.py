"""One of two workers under torch's own DDP, on the CPU: ``python -m tests.fairseq_ext.training.ddp_rank OUT CORPUS
PORT RANK`` stores the gradients of each update. fairseq's wrapper needs a GPU for each worker, so it is built here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from fairseq.distributed import ModuleProxyWrapper
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel

from fairseq_ext.criterion import FusedLabelSmoothedCrossEntropy
from fairseq_ext.task import SupernetTranslationConfig, SupernetTranslationTask
from tests.fairseq_ext.running import Backward, build, set_up

UPDATES = (0, 9)
"""Two draws with the widest decoder, whose output table is a parameter itself, of one layer and of two."""

Gradients = dict[str, Tensor | None]


def gradients(corpus: Path, workers: list[int], wrap: Callable[[Any], Any]) -> list[Gradients]:
    """Return the gradients after each update on two micro-batches of each worker; None where there is none."""
    task = set_up(SupernetTranslationTask, SupernetTranslationConfig, corpus)
    task.load_dataset("train")
    dataset = task.dataset("train")
    starts = [start for worker in workers for start in (20 * worker, 20 * worker + 9)]
    batches = [dataset.collater([dataset[row] for row in range(start, start + 6)]) for start in starts]
    criterion = FusedLabelSmoothedCrossEntropy(task, sentence_avg=False, label_smoothing=0.1)
    model = build(task)
    wrapped = wrap(model)
    results = []
    for update in UPDATES:
        model.zero_grad(set_to_none=True)
        for batch in batches:
            alone = batch is not batches[-1] and hasattr(wrapped, "no_sync")
            with wrapped.no_sync() if alone else nullcontext():
                task.train_step(batch, wrapped, criterion, Backward(), update)
        results.append({name: None if p.grad is None else p.grad.clone() for name, p in model.named_parameters()})
    return results


def wrapped_by_torch(model: Any) -> Any:
    """As fairseq wraps it with ``--ddp-backend pytorch_ddp --find-unused-parameters``."""
    options = {"find_unused_parameters": True, "gradient_as_bucket_view": True, "broadcast_buffers": False}
    return ModuleProxyWrapper(DistributedDataParallel(model, **options))


def main() -> None:
    out, corpus, port, rank = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=2, rank=rank)
    torch.save(gradients(corpus, [rank], wrapped_by_torch), out)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
