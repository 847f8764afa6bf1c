"""A disk cache of a teacher's output for fairseq's training data.

Shapes: B batch, T length, N = B * T rows of a padded batch, K words.
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

_LOOKED_AT = 1000
"""Number of sentences whose words enter the data's digest."""
_OTHER = (
    "sentences of a batch differ in length from those of the data set, so --teacher-cache cannot keep them; drop it"
)


class SampleCache:
    """A teacher's most probable words for each target token, by sentence number."""

    def __init__(self, folder: Path, task: Any, teacher: torch.nn.Module, kept: int, temperature: float) -> None:
        dataset, words = _training_data(task), len(task.target_dictionary)
        self._padding = int(task.target_dictionary.pad())
        self._lengths = np.asarray(
            dataset.tgt_sizes if hasattr(dataset, "tgt_sizes") else dataset.sizes, dtype=np.int64
        )
        settings = CacheSettings(
            teacher=weights_digest(teacher.state_dict()),
            data=_data_digest(dataset, self._lengths),
            words=words,
            kept=min(kept, words),
            temperature=temperature,
        )
        self._cache = TeacherCache(folder, settings, self._lengths)
        _log.info(
            "teacher's cache %s: %d of %d sentences, %.1f MB on disk",
            folder, self._cache.filled, len(self._lengths), self._cache.size_mb,
        )  # fmt: skip

    def rows(self, sample: dict[str, Any], compute: Callable[[], TopK]) -> TopK:
        """Return the words (N, K) of a batch; ``compute`` returns all rows if a sentence is missing.

        New rows are read back, so that a resumed training uses the same numbers.
        """
        ids = [int(number) for number in sample["id"].tolist()]  # the host waits for the device here
        target: Tensor = sample["target"]
        places = self._places(ids, target)
        missing = [row for row, number in enumerate(ids) if not self._cache.has([number])]
        if missing:
            expected = np.arange(target.shape[1]) < self._lengths[ids][:, None]
            if not np.array_equal(target.ne(self._padding).cpu().numpy(), expected):
                raise DataError(_OTHER)
            computed = compute()
            chosen = torch.from_numpy(np.concatenate([places[row] for row in missing])).to(target.device)
            self._cache.put([ids[row] for row in missing], TopK(*(part[chosen] for part in computed)))
        kept = self._cache.get(ids, target.device)
        assert kept is not None
        rows = np.concatenate(places)
        take = np.zeros(target.numel(), dtype=np.int64)  # padding takes any row, and is not read
        take[rows] = np.arange(len(rows))
        order = torch.from_numpy(take).to(target.device)
        return TopK(*(part[order] for part in kept))

    def flush(self) -> None:
        self._cache.flush()

    def _places(self, ids: list[int], target: Tensor) -> list[np.ndarray]:
        """Return each sentence's rows in a batch padded on the right."""
        if max(ids) >= len(self._lengths) or self._lengths[ids].max() > target.shape[1]:
            raise DataError(_OTHER)
        return [row * target.shape[1] + np.arange(self._lengths[number]) for row, number in enumerate(ids)]


def _training_data(task: Any) -> Any:
    if len(str(options_of(task).data).split(":")) > 1:
        raise ConfigError("--teacher-cache needs one data folder, several are read in turn; drop it")
    names = [name for name in task.datasets if name.startswith("train")]
    if not names:
        raise ConfigError(f"--teacher-cache needs training data named train*, there is {', '.join(task.datasets)}")
    dataset = task.datasets[names[0]]
    if not (hasattr(dataset, "sizes") or hasattr(dataset, "tgt_sizes")):
        raise ConfigError(
            "--teacher-cache keeps the teacher's output for fixed data, and this data may change; drop it"
        )
    return dataset


def _data_digest(dataset: Any, lengths: np.ndarray) -> str:
    digest = hashlib.blake2b(lengths.tobytes(), digest_size=16)
    for index in np.unique(np.linspace(0, len(lengths) - 1, _LOOKED_AT).astype(np.int64)):
        item = dataset[int(index)]
        for name in ("source", "target"):
            digest.update(np.ascontiguousarray(torch.as_tensor(item[name]).numpy()).tobytes())
    return digest.hexdigest()
