"""What a folder of ``fairseq-preprocess`` holds: dictionaries, and the splits that a task reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.data.data_utils import infer_language_pair
from torch import Tensor

from fairseq_ext.compat import wrong_input
from nas_core.errors import DataError


def vocabulary_sizes(folder: Path) -> tuple[int, int] | None:
    """Entries of the source and of the target dictionary, special symbols included; twice those of the one that
    ``--only-source`` leaves; None if there is no dictionary.

    Raises:
        DataError: a dictionary cannot be read, or which of two is the source's cannot be told.
    """
    found = {path.name.split(".")[1]: path for path in sorted(folder.glob("dict.*.txt"))}
    if not found:
        return (_size(alone),) * 2 if (alone := folder / "dict.txt").exists() else None
    sizes = {language: _size(path) for language, path in found.items()}
    pair = infer_language_pair(str(folder))
    if all(language in sizes for language in pair):
        return sizes[pair[0]], sizes[pair[1]]
    if len(set(sizes.values())) == 1:
        return (next(iter(sizes.values())),) * 2
    listed = ", ".join(f"{language} ({size})" for language, size in sizes.items())
    raise DataError(
        f"{folder} has dictionaries of {listed}, and no data that"
        " says which is the source's; give --workload source_vocab=N and target_vocab=N"
    )


def _size(path: Path) -> int:
    try:
        return len(Dictionary.load(str(path)))
    except Exception as error:  # fairseq raises Exception itself for a wrong encoding
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path} is no dictionary of fairseq-preprocess ({reason}); write the folder anew") from None


def options_of(task: Any) -> Any:
    """The options of a task of fairseq's; some keep them under another name."""
    return getattr(task, "cfg", None) or task.args


def split_of(task: Any, split: str) -> Any:
    """The data set of a split; None: its folder has no such split.

    Raises:
        DataError: it cannot be read.
    """
    try:
        task.load_dataset(split, combine=False, epoch=1)
    except FileNotFoundError:
        return None
    except ValueError as error:
        if message := wrong_input(error):
            raise DataError(message) from None
        raise
    return task.dataset(split)


def on_device(batch: Any, device: str | torch.device) -> Any:
    """A batch with all its tensors there."""
    moved: Callable[[Tensor], Tensor] = lambda tensor: tensor.to(torch.device(device))  # noqa: E731
    return utils.apply_to_sample(moved, batch)
