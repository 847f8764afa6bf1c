"""One of two workers under torch's own DDP, on the CPU: ``python -m tests.fairseq_ext.training.ddp_rank OUT CORPUS
PORT RANK`` keeps the gradients of each case. fairseq's wrapper takes a GPU for each worker, so it is built here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.distributed import ModuleProxyWrapper
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel

from fairseq_ext.criterion import FusedLabelSmoothedCrossEntropy
from fairseq_ext.task import SupernetTranslationConfig, SupernetTranslationTask
from tests.fairseq_ext.running import Backward, build, set_up

CASES = [
    ("spos", "neuron", FusedLabelSmoothedCrossEntropy, True),
    ("sandwich", "none", LabelSmoothedCrossEntropyCriterion, False),
]
"""Sampling, experts, criterion, and whether gradients are views of DDP's buckets."""
UPDATES = (0, 9)
"""Two draws with the widest decoder, whose output table is a parameter itself, of one layer and of two."""

Gradients = dict[str, Tensor | None]


class Trainings:
    """The gradients of a few updates, as fairseq's trainer comes to them."""

    def __init__(self, corpus: Path) -> None:
        self.task = set_up(SupernetTranslationTask, SupernetTranslationConfig, corpus)
        self.task.load_dataset("train")

    def batches(self, worker: int) -> list[dict[str, Any]]:
        """Two micro-batches of a worker's own sentences."""
        dataset = self.task.dataset("train")
        rows = [range(start, start + 6) for start in (20 * worker, 20 * worker + 9)]
        return [dataset.collater([dataset[row] for row in part]) for part in rows]

    def gradients(self, case: int, workers: list[int], wrap: Callable[[Any, bool], Any]) -> list[Gradients]:
        """After each update on the batches of these workers; None where a parameter has none."""
        sampling, mos, kind, views = CASES[case]
        self.task.cfg.supernet_sampling = sampling
        criterion = kind(self.task, sentence_avg=False, label_smoothing=0.1)
        model = build(self.task, mos=mos)
        wrapped = wrap(model, views)
        batches = [batch for worker in workers for batch in self.batches(worker)]
        found = []
        for update in UPDATES:
            model.zero_grad(set_to_none=True)
            for batch in batches:
                alone = batch is not batches[-1] and hasattr(wrapped, "no_sync")
                with wrapped.no_sync() if alone else nullcontext():
                    self.task.train_step(batch, wrapped, criterion, Backward(), update)
            named = model.named_parameters()
            found.append({name: None if p.grad is None else p.grad.clone() for name, p in named})
        return found


def wrapped_by_torch(model: Any, views: bool) -> Any:
    """As fairseq wraps it with ``--ddp-backend pytorch_ddp --find-unused-parameters``."""
    options = {"find_unused_parameters": True, "gradient_as_bucket_view": views, "broadcast_buffers": False}
    return ModuleProxyWrapper(DistributedDataParallel(model, **options))


def main() -> None:
    out, corpus, port, rank = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=2, rank=rank)
    trainings = Trainings(corpus)
    torch.save([trainings.gradients(case, [rank], wrapped_by_torch) for case in range(len(CASES))], out)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
