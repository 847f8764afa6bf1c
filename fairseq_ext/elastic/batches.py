"""Batches of the data that a network was trained on."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairseq_ext.data import on_device, options_of, split_of
from nas_core.errors import DataError

_SENTENCES, _TOKENS = 64, 4096
"""What a batch has at most, unless one sample is longer."""


def calibration_batches(task: Any, splits: tuple[str, ...], longest: Any, count: int, device: str) -> list[Any]:
    """Collate ``count`` batches, or as many as there are, of random samples of the first split that is there; the same
    each time.

    Args:
        task: set up as for the network.
        splits: names of data sets, the one to be preferred first.
        longest: what ``max_positions`` of the network says; longer samples are left out.

    Raises:
        DataError: there is no such split, or no sample.
    """
    dataset = next((found for split in splits if (found := split_of(task, split)) is not None), None)
    where = f"split {' or '.join(map(repr, dict.fromkeys(splits)))} in {options_of(task).data}"
    if dataset is None:
        raise DataError(f"no {where}; calibration needs data: give --data, or take --importance weight")
    stream = np.random.default_rng(0)
    chosen = stream.permutation(len(dataset))[: count * _SENTENCES]
    by_length = chosen[np.argsort([dataset.num_tokens(int(index)) for index in chosen], kind="stable")]
    indices = task.filter_indices_by_size(by_length, dataset, longest, ignore_invalid_inputs=True)
    most = max([_TOKENS, *(int(dataset.num_tokens(int(index))) for index in indices)])
    cut = dataset.batch_by_size(indices, max_tokens=most, max_sentences=_SENTENCES) if len(indices) else []
    kept = [cut[index] for index in sorted(stream.permutation(len(cut))[:count])]
    batches = [dataset.collater([dataset[int(index)] for index in batch]) for batch in kept]
    batches = [on_device(batch, device) for batch in batches if batch]
    if not batches:
        raise DataError(f"{where} has no batch that this network reads; calibration needs one")
    return batches
