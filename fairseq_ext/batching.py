"""Batches of every sentence: fairseq leaves out a last batch whose size is no multiple of
``--required-batch-size-multiple`` (8 by default). Those are the longest sentences, or all of a small set.

fairseq cuts the batches of all its commands and tasks with one function, so that one is corrected. The batches that it
keeps stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from fairseq.data import data_utils


def keep_all_sentences() -> None:
    """Have fairseq keep the last batch; calling it again changes nothing."""
    original = getattr(data_utils.batch_by_size, "of_fairseq", data_utils.batch_by_size)

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
        if fixed_shapes is not None:  # cut by another rule, in another order, and whole
            return original(indices, num_tokens_fn, num_tokens_vec, *limits)
        if not isinstance(indices, np.ndarray):
            indices = np.fromiter(indices, np.int64, -1)
        if not len(indices):  # of which fairseq cannot look at the last batch
            return []
        batches = original(indices, num_tokens_fn, num_tokens_vec, *limits)
        kept = sum(map(len, batches))
        return [*batches, indices[kept:]] if kept < len(indices) else batches

    batch_by_size.of_fairseq = original  # type: ignore[attr-defined]
    data_utils.batch_by_size = batch_by_size
