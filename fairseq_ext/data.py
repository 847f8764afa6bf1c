"""Dictionaries, splits and batches of ``fairseq-preprocess`` folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.data.data_utils import infer_language_pair

from fairseq_ext.compat import wrong_input
from nas_core.errors import DataError

_SENTENCES, _TOKENS = 64, 4096
"""Largest number of sentences and of tokens of a calibration batch; the latter is at least the longest sentence."""


def vocabulary_sizes(folder: Path) -> tuple[int, int] | None:
    """Return the sizes of the source and target dictionaries (twice the same for one dictionary), or None."""
    sizes = {path.name.removeprefix("dict."): _size(path) for path in sorted(folder.glob("dict*.txt"))}
    if not sizes:
        return None
    if len(set(sizes.values())) == 1:
        return (next(iter(sizes.values())),) * 2
    source, target = (sizes.get(f"{language}.txt") for language in infer_language_pair(str(folder)))
    if source and target:
        return source, target
    raise DataError(
        f"{folder} has dictionaries of different sizes, and source and target languages cannot be inferred; give"
        " --workload source_vocab=N and target_vocab=N"
    )


def _size(path: Path) -> int:
    try:
        return len(Dictionary.load(str(path)))
    except Exception as error:  # fairseq raises Exception itself for a wrong encoding
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path} is not a dictionary of fairseq ({reason}); run fairseq-preprocess again") from None


def options_of(task: Any) -> Any:
    return getattr(task, "cfg", None) or task.args


def split_of(task: Any, split: str) -> Any:
    """Return the data set of a split, or None if the split does not exist."""
    try:
        task.load_dataset(split, combine=False, epoch=1)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DataError(
            wrong_input(error)
            or f"split {split!r} of {options_of(task).data} cannot be read ({error}); run fairseq-preprocess again"
        ) from None
    return task.dataset(split)


def on_device(batch: Any, device: str | torch.device) -> Any:
    return utils.apply_to_sample(lambda tensor: tensor.to(torch.device(device)), batch)


def calibration_batches(
    task: Any, splits: tuple[str, ...], max_length: Any, count: int, device: str, sentences: int = _SENTENCES
) -> list[Any]:
    """Return up to ``count`` batches of random samples, the same each time, from the first split that exists.

    Args:
        max_length: largest number of tokens, a pair for translation.
    """
    dataset = next((data for split in splits if (data := split_of(task, split)) is not None), None)
    source = f"split {' or '.join(map(repr, dict.fromkeys(splits)))} in {options_of(task).data}"
    if dataset is None:
        raise DataError(f"calibration needs data, but there is no {source}; give --data, or --importance weight")
    generator = np.random.default_rng(0)
    sample = generator.permutation(len(dataset))[: count * sentences]
    by_length = sample[np.argsort([dataset.num_tokens(int(index)) for index in sample], kind="stable")]
    indices = task.filter_indices_by_size(by_length, dataset, max_length, ignore_invalid_inputs=True)
    if not len(indices):
        raise DataError(
            f"all sentences of {source} are too long for this network; give other calibration data as --data"
        )
    max_tokens = max(_TOKENS, *(int(dataset.num_tokens(int(index))) for index in indices))
    batches = dataset.batch_by_size(indices, max_tokens=max_tokens, max_sentences=sentences)
    selected = [batches[index] for index in sorted(generator.permutation(len(batches))[:count])]
    return [on_device(dataset.collater([dataset[int(index)] for index in batch]), device) for batch in selected]
