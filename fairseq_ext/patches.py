"""Patches of fairseq's batching and distributed training."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from fairseq.data import data_utils
from fairseq.distributed import utils
from fairseq.file_io import PathManager
from fairseq.trainer import Trainer
from omegaconf import open_dict

from fairseq_ext.compat import one_line_errors, replace_function
from nas_core.errors import CheckpointError


def keep_all_sentences() -> None:
    """Make fairseq keep the last batch of a data set, if it is no multiple of ``--required-batch-size-multiple``."""
    replace_function(data_utils, "batch_by_size", _keep_last_batch)


def _keep_last_batch(original: Any) -> Any:
    def batch_by_size(
        indices: Any,
        num_tokens_fn: Any,
        num_tokens_vec: Any = None,
        max_tokens: Any = None,
        max_sentences: Any = None,
        required_batch_size_multiple: Any = 1,
        fixed_shapes: Any = None,
    ) -> Any:
        limits = (max_tokens, max_sentences, required_batch_size_multiple, fixed_shapes)
        if fixed_shapes is not None:  # cut by another rule, in another order, and complete
            return original(indices, num_tokens_fn, num_tokens_vec, *limits)
        if not isinstance(indices, np.ndarray):
            indices = np.fromiter(indices, np.int64, -1)
        if not len(indices):  # fairseq fails on an empty set
            return []
        batches = original(indices, num_tokens_fn, num_tokens_vec, *limits)
        batched = sum(map(len, batches))
        return [*batches, indices[batched:]] if batched < len(indices) else batches

    return batch_by_size


def read_checkpoints_on_every_worker() -> None:
    """Make every worker read the checkpoint, as with ``--load-checkpoint-on-all-dp-ranks``."""
    # fairseq broadcasts it as objects that torch does not load from untrusted bytes.
    replace_function(Trainer, "load_checkpoint", _load_on_every_worker)


def _load_on_every_worker(original: Any) -> Any:
    def load_checkpoint(self: Any, filename: Any, *args: Any, **options: Any) -> Any:
        checkpoint = self.cfg.checkpoint
        if self.data_parallel_world_size < 2 or self.tpu or checkpoint.load_checkpoint_on_all_dp_ranks:
            return original(self, filename, *args, **options)
        with one_line_errors():
            _check_visible(self, filename)
        with open_dict(self.cfg):
            checkpoint.load_checkpoint_on_all_dp_ranks = True
        try:
            return original(self, filename, *args, **options)
        finally:  # checkpoints hold the options as they were given
            with open_dict(self.cfg):
                checkpoint.load_checkpoint_on_all_dp_ranks = False

    return load_checkpoint


def _check_visible(trainer: Any, filename: Any) -> None:
    # All workers have to start with equal weights.
    visible = torch.tensor([float(PathManager.isfile(filename))], device=trainer.device)
    utils.all_reduce(visible, group=trainer.data_parallel_process_group)
    if 0 < int(visible) < trainer.data_parallel_world_size:
        raise CheckpointError(
            f"{filename} exists for {int(visible)} of {trainer.data_parallel_world_size} workers; put it in a folder"
            " that all machines share"
        )
