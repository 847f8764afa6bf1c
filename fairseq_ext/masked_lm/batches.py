"""Batches of fairseq's tasks as plain tensors, so that evaluating them reads nothing back from a device.

Shapes: B batch, T length, N masked tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import data_utils

from fairseq_ext.compat import wrong_input
from nas_core.errors import DataError

__all__ = ["plain_batch", "validation_batches"]

_TOKENS = 4096
"""Tokens of a batch at most."""


def plain_batch(batch: dict[str, Any], padding: int, device: str | torch.device) -> dict[str, Any]:
    """A batch of ``masked_lm`` or ``sentence_prediction``: ``tokens`` (B, T), ``target``, and ``count`` of what is
    predicted. Of masked tokens ``target`` is (N,), and ``at`` (N,) their places in B * T."""
    tokens, target = batch["net_input"]["src_tokens"], batch["target"]
    made = {"tokens": tokens}
    if target.shape == tokens.shape:
        made["at"] = target.flatten().ne(padding).nonzero().flatten()
        target = target.flatten()[made["at"]]
    elif not target.is_floating_point():
        target = target.flatten()
    made["target"] = target
    return {name: tensor.to(device) for name, tensor in made.items()} | {"count": target.shape[0]}


def validation_batches(
    task: Any, subset: str, sentences: int | None, longest: int, device: str | torch.device
) -> list[dict[str, Any]]:
    """All sequences of a split, or ``sentences`` of them, the same each time, as :func:`plain_batch` makes them.

    Raises:
        DataError: there is no such split, or nothing in it is masked.
    """
    dataset = _loaded(task, subset)
    with data_utils.numpy_seed(0):
        indices: Sequence[Any] = dataset.ordered_indices()
    if sentences is not None and sentences < len(indices):
        chosen = np.random.default_rng(0).choice(len(indices), sentences, replace=False)
        indices = np.asarray(indices)[np.sort(chosen)]
    indices = task.filter_indices_by_size(indices, dataset, longest, ignore_invalid_inputs=True)
    cut = dataset.batch_by_size(indices, max_tokens=max(_TOKENS, longest)) if len(indices) else []
    padding = task.source_dictionary.pad()
    collated = (dataset.collater([dataset[int(index)] for index in batch]) for batch in cut)
    batches = [plain_batch(batch, padding, device) for batch in collated if batch]
    batches = [batch for batch in batches if batch["count"]]
    if not batches:
        raise DataError(f"split {subset!r} has nothing to predict; evaluation needs at least one masked token")
    return batches


def _loaded(task: Any, subset: str) -> Any:
    try:
        task.load_dataset(subset, combine=False, epoch=1)
    except FileNotFoundError:
        raise DataError(f"no split {subset!r} in {task.cfg.data}; give another --valid-subset or --data") from None
    except ValueError as error:
        if message := wrong_input(error):
            raise DataError(message) from None
        raise
    return task.dataset(subset)
