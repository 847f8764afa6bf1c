"""Several workers that train together: what fairseq does for them that fails with current torch or in this plug-in."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from fairseq.distributed import utils
from fairseq.file_io import PathManager
from fairseq.tasks import FairseqTask
from fairseq.trainer import Trainer
from omegaconf import open_dict

from fairseq_ext.compat import one_line_errors
from nas_core.errors import CheckpointError


def read_checkpoints_on_every_worker() -> None:
    """Have each of several workers read the checkpoint, as with ``--load-checkpoint-on-all-dp-ranks``; calling it again
    changes nothing.

    fairseq has the first one read it and sends the others what it read, with settings in objects that torch does not
    load from untrusted bytes.
    """
    original = getattr(Trainer.load_checkpoint, "of_fairseq", Trainer.load_checkpoint)

    def load_checkpoint(self: Any, filename: Any, *args: Any, **options: Any) -> Any:
        checkpoint = self.cfg.checkpoint
        if self.data_parallel_world_size < 2 or self.tpu or checkpoint.load_checkpoint_on_all_dp_ranks:
            return original(self, filename, *args, **options)
        with one_line_errors():
            _check_all_have(self, filename)
        with open_dict(self.cfg):
            checkpoint.load_checkpoint_on_all_dp_ranks = True
        try:
            return original(self, filename, *args, **options)
        finally:  # checkpoints hold the options as they were given
            with open_dict(self.cfg):
                checkpoint.load_checkpoint_on_all_dp_ranks = False

    load_checkpoint.of_fairseq = original  # type: ignore[attr-defined]
    Trainer.load_checkpoint = load_checkpoint


def _check_all_have(trainer: Any, filename: Any) -> None:
    """Whether all workers see the file, or none: one that does not would go on with weights of its own."""
    seen = torch.tensor([float(PathManager.isfile(filename))], device=trainer.device)
    utils.all_reduce(seen, group=trainer.data_parallel_process_group)
    if 0 < int(seen) < trainer.data_parallel_world_size:
        raise CheckpointError(
            f"{filename} is a file for {int(seen)} of {trainer.data_parallel_world_size} workers; put it in a folder"
            " that all machines share"
        )


def tell_of_dummy_batches() -> None:
    """Have every task of fairseq's tell a criterion with a teacher that a batch is not counted; calling it again
    changes nothing.

    A worker that has no batch left computes one of the validation data beside the others, whose numbers of sentences
    are not those of the training data.
    """
    original = getattr(FairseqTask.train_step, "of_fairseq", FairseqTask.train_step)

    def train_step(
        self: Any,
        sample: Any,
        model: Any,
        criterion: Any,
        optimizer: Any,
        update_num: int,
        ignore_grad: bool = False,
    ) -> Any:
        dummy = ignore_grad and hasattr(criterion, "dummy_batch")
        with criterion.dummy_batch() if dummy else nullcontext():
            return original(self, sample, model, criterion, optimizer, update_num, ignore_grad)

    train_step.of_fairseq = original  # type: ignore[attr-defined]
    FairseqTask.train_step = train_step
