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
from nas_core.models.translation.genes import bounded
from nas_core.space import SearchSpace

logger = logging.getLogger(__name__)

STEP = 8
"""The longest sentence is rounded up to a multiple of this."""
FAR = 5
"""Times the median length from which on a warning tells that the scale is far above most sentences."""


def resolve_linear_lengths(args: Namespace, space: SearchSpace, task: Any) -> None:
    """Write the scale of linear attention in the decoder into ``args``, and with them into the checkpoint.

    It is ``--linear-max-length``, by default the longest target (and, where attention to the source may be linear, the
    longest source) of the training and validation data: far above the lengths that occur, the cosine weighs nothing.

    Raises:
        ConfigError: no scale is given and no data is there to take it from.
    """
    longest = max(args.max_source_positions, args.max_target_positions)
    if args.linear_max_length is not None:
        return
    of_source = bounded(space, "cross")
    if not (of_source or bounded(space, "decoder")):
        args.linear_max_length = longest
        return
    splits = [str(getattr(args, "train_subset", "train")), *str(getattr(args, "valid_subset", "valid")).split(",")]
    sizes = sentence_lengths(task.cfg, splits, [task.cfg.source_lang] * of_source + [task.cfg.target_lang])
    sizes = sizes[sizes <= longest]  # longer ones are not trained on
    if not len(sizes):
        raise ConfigError(
            "no training data to take the scale of linear attention in the decoder from; give the longest sentence that"
            " it is for, --linear-max-length M"
        )
    args.linear_max_length = min(longest, -(-int(sizes.max()) // STEP) * STEP)
    logger.info(
        "linear attention in the decoder is scaled by, and reads, %d tokens (the longest training sentence has %d, half"
        " of them have up to %d)",
        args.linear_max_length,
        sizes.max(),
        np.median(sizes),
    )
    if args.linear_max_length > FAR * np.median(sizes):
        logger.warning(
            "that is far above most sentences, for which the cosine then weighs next to nothing; leave the longest ones"
            " out, or give --linear-max-length M with the longest sentence that shall be read"
        )


def sentence_lengths(config: Any, splits: Sequence[str], languages: Sequence[str]) -> NDArray[np.int64]:
    """Tokens of each sentence, the end included, in these splits and languages of a translation task's data; a split
    may have several parts (``train``, ``train1``, ..)."""
    return np.concatenate([np.empty(0, np.int64), *_sizes(config, splits, languages)])


def _sizes(config: Any, splits: Sequence[str], languages: Sequence[str]) -> Iterator[NDArray[np.int64]]:
    source, target, implementation = config.source_lang, config.target_lang, config.dataset_impl
    for path, split in product(str(config.data or "").split(":"), splits):
        for part in count():
            name = f"{path}/{split}{part or ''}"
            prefixes = (f"{name}.{source}-{target}", f"{name}.{target}-{source}")
            found = next((p for p in prefixes if _exists(f"{p}.{source}", implementation)), None)
            if found is None:
                break
            for language in languages:
                if _exists(f"{found}.{language}", implementation):
                    data = data_utils.load_indexed_dataset(f"{found}.{language}", None, implementation)
                    yield np.asarray(data.sizes, np.int64)


def _exists(path: str, implementation: str | None) -> bool:
    return bool(indexed_dataset.dataset_exists(path, implementation)) and implementation != "raw"
