"""Disk cache of a teacher's output for fairseq's training data.

Shapes: B batch, T length, N = B * T target tokens including padding, K words per token.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_ext.data import options_of
from nas_core.errors import ConfigError, DataError
from nas_core.supernet.teacher.cache import CacheSettings, TeacherCache, weights_digest
from nas_core.supernet.teacher.losses import TopK

_log = logging.getLogger(__name__)

_DIGESTED = 1000
"""Number of sentences from which the hash of the data is computed."""
_OTHER = "sentences of a batch differ in length from those of the data set; leave --teacher-cache out"


class SampleCache:
    """Cache of a teacher's most probable words for each target token of the training data."""

    def __init__(self, folder: Path, task: Any, teacher: torch.nn.Module, top_k: int, temperature: float) -> None:
        if ":" in str(options_of(task).data):
            raise ConfigError(
                f"--teacher-cache supports one data folder, but {options_of(task).data} are several; leave it out"
            )
        dataset = next((task.datasets[name] for name in task.datasets if name.startswith("train")), None)
        lengths = getattr(dataset, "tgt_sizes", getattr(dataset, "sizes", None))
        if lengths is None:
            raise ConfigError(
                "--teacher-cache needs a training split named train* with known lengths; leave --teacher-cache out"
            )
        self._padding = int(task.target_dictionary.pad())
        self._lengths = np.asarray(lengths, dtype=np.int64)
        settings = CacheSettings(
            teacher=weights_digest(teacher.state_dict()),
            data=_data_digest(dataset, self._lengths),
            words=len(task.target_dictionary),
            kept=top_k,
            temperature=temperature,
        )
        self._cache = TeacherCache(folder, settings, self._lengths)
        _log.info(
            "cache of the teacher in %s: %d of %d sentences, %.1f MB on disk",
            folder, self._cache.filled, len(self._lengths), self._cache.size_mb,
        )  # fmt: skip

    def rows(self, sample: dict[str, Any], compute: Callable[[], TopK]) -> TopK:
        """Return the most probable words (N, K) of a batch.

        Args:
            compute: function that computes them with the teacher, called if a sentence is not cached.
        """
        # New rows are read back, so that a resumed training uses the same numbers.
        ids = [int(number) for number in sample["id"].tolist()]  # the host waits for the device here
        target: Tensor = sample["target"]
        if max(ids) >= len(self._lengths) or self._lengths[ids].max() > target.shape[1]:
            raise DataError(_OTHER)
        # each sentence's rows in a batch padded on the right
        places = [row * target.shape[1] + np.arange(self._lengths[number]) for row, number in enumerate(ids)]
        missing = [row for row, number in enumerate(ids) if not self._cache.has([number])]
        if missing:
            expected = np.arange(target.shape[1]) < self._lengths[ids][:, None]
            if not np.array_equal(target.ne(self._padding).cpu().numpy(), expected):
                raise DataError(_OTHER)
            computed = compute()
            new_rows = torch.from_numpy(np.concatenate([places[row] for row in missing])).to(target.device)
            self._cache.put([ids[row] for row in missing], TopK(*(part[new_rows] for part in computed)))
        top = self._cache.get(ids, target.device)
        assert top is not None
        rows = np.concatenate(places)
        take = np.zeros(target.numel(), dtype=np.int64)  # padding takes any row, and is not read
        take[rows] = np.arange(len(rows))
        order = torch.from_numpy(take).to(target.device)
        return TopK(*(part[order] for part in top))

    def flush(self) -> None:
        self._cache.flush()


def _data_digest(dataset: Any, lengths: np.ndarray) -> str:
    digest = hashlib.blake2b(lengths.tobytes(), digest_size=16)
    for index in np.unique(np.linspace(0, len(lengths) - 1, _DIGESTED).astype(np.int64)):
        item = dataset[int(index)]
        for name in ("source", "target"):
            digest.update(np.ascontiguousarray(torch.as_tensor(item[name]).numpy()).tobytes())
    return digest.hexdigest()
