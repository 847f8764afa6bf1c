"""How long sentences get: what linear attention in the decoder is scaled by, and where decoding has to end."""

from __future__ import annotations

import logging
from argparse import Namespace
from collections.abc import Iterator, Sequence
from itertools import count, product
from typing import Any

import numpy as np
from fairseq.data import data_utils, indexed_dataset
from numpy.typing import NDArray

from nas_core.errors import ConfigError
from nas_core.space import SearchSpace
from nas_core.supernet.genes import linear_limits

__all__ = ["STEP", "longest_sentence", "resolve_linear_lengths"]

logger = logging.getLogger(__name__)

STEP = 8
"""The longest sentence is rounded up to a multiple of this."""


def resolve_linear_lengths(args: Namespace, space: SearchSpace, task: Any) -> None:
    """Write the scale of linear attention in the decoder into ``args``, and with them into the checkpoint.

    It is ``--linear-max-length``, by default the longest sentence of the training and validation data: far above the
    lengths that occur, the cosine would weigh nothing.

    Raises:
        ConfigError: no scale is given and no data is there to take it from.
    """
    longest = max(args.max_source_positions, args.max_target_positions)
    if args.linear_max_length is not None:
        return
    if not any(linear_limits(space)):
        args.linear_max_length = longest
        return
    splits = [str(getattr(args, "train_subset", "train")), *str(getattr(args, "valid_subset", "valid")).split(",")]
    found = longest_sentence(task, splits, longest)
    if found is None:
        raise ConfigError(
            "no training data to take the scale of linear attention in the decoder from; give the longest sentence that"
            " it is for, --linear-max-length M"
        )
    args.linear_max_length = min(longest, -(-found // STEP) * STEP)
    logger.info(
        "linear attention in the decoder is scaled by, and reads, %d tokens (the longest training sentence has %d;"
        " --linear-max-length sets another)",
        args.linear_max_length,
        found,
    )


def longest_sentence(task: Any, splits: Sequence[str], limit: int) -> int | None:
    """Tokens of the longest sentence of up to ``limit`` tokens (longer ones are not trained on), of either language, in
    these splits of a translation task's data; None without such data."""
    longest = 0
    for sizes in _sizes(task.cfg, splits):
        longest = max(longest, int(sizes[sizes <= limit].max(initial=0)))
    return longest or None


def _sizes(config: Any, splits: Sequence[str]) -> Iterator[NDArray[np.int64]]:
    """Tokens of each sentence, the end included; a split may have several parts (``train``, ``train1``, ..)."""
    source, target, implementation = config.source_lang, config.target_lang, config.dataset_impl
    for path, split in product(str(config.data or "").split(":"), splits):
        for part in count():
            name = f"{path}/{split}{part or ''}"
            prefixes = (f"{name}.{source}-{target}", f"{name}.{target}-{source}")
            found = next((p for p in prefixes if _exists(f"{p}.{source}", implementation)), None)
            if found is None:
                break
            for language in (source, target):
                if _exists(f"{found}.{language}", implementation):
                    data = data_utils.load_indexed_dataset(f"{found}.{language}", None, implementation)
                    yield np.asarray(data.sizes, np.int64)


def _exists(path: str, implementation: str | None) -> bool:
    return bool(indexed_dataset.dataset_exists(path, implementation)) and implementation != "raw"
