"""A frozen network that says something about each batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fairseq_ext.data import options_of
from fairseq_ext.distillation.layers import LayerStates, check_one_origin, with_states
from fairseq_ext.distillation.opening import open_teacher
from fairseq_ext.distillation.samples import SampleCache
from nas_core.errors import ConfigError
from nas_core.supernet.active import SubnetHolder
from nas_core.supernet.teacher import TopK, top_k
from nas_core.supernet.teacher.projected import (
    Probabilities,
    Projection,
    probabilities_of,
    projected_probabilities,
    projected_top_k,
)


class Answer(NamedTuple):
    """What a teacher says about a batch."""

    rows: Probabilities | TopK | Projection
    """What it says about each of the N rows."""
    states: LayerStates | None
    """What its layers read and gave, where they are compared."""


def said(
    outputs: tuple[Tensor, Tensor | None],
    kept: int,
    temperature: float,
    states: LayerStates | None = None,
    once: bool = False,
) -> Answer:
    """The answer of a network that gave features (N, C) and their table (V, C), or logits (N, V) and no table; where it
    is read ``once``, by a student that has a table too, probabilities are computed with it."""
    x, table = outputs
    if table is None:
        return Answer(top_k(x, kept, temperature) if kept else probabilities_of(x.detach(), temperature), states)
    x, table = x.detach(), table.detach()
    if once and not kept:
        return Answer(Projection(x, table, temperature), states)
    rows = projected_top_k(x, table, kept, temperature) if kept else projected_probabilities(x, table, temperature)
    return Answer(rows, states)


class FileTeacher:
    """The network of a checkpoint. It is no part of the criterion as a module, so it is in no checkpoint of the student
    and in no optimizer.

    Args:
        path: of the checkpoint.
        task: of the student.
        options: of the criterion.

    Raises:
        NasExtError: see :func:`fairseq_ext.distillation.opening.open_teacher`.
    """

    def __init__(self, path: Path, task: Any, options: Any) -> None:
        self.path, self._task, self._options = path, task, options
        self.model: nn.Module = open_teacher(path, task)
        self._subnet: Any = None
        self._cache: SampleCache | None = None
        self._ready = False

    def prepare(self, student: Any) -> None:
        """Go where the student is, before the first update.

        Raises:
            ConfigError: it cannot teach this student. DataError: the cache is of something else.
        """
        if self._ready:
            return
        _check_lengths(self.path, self.model, student, getattr(options_of(self._task), "tokens_per_sample", None))
        options = self._options
        if options.distill_hidden or options.distill_attention:
            check_one_origin(student, self.model, str(self.path))
        if options.teacher_cache:
            self._cache = SampleCache(
                Path(options.teacher_cache), self._task, self.model, options.teacher_top_k, options.distill_temperature
            )
        like = next(parameter for parameter in student.parameters() if parameter.is_floating_point())
        self.model.to(device=like.device, dtype=like.dtype)
        self._ready = True

    def answer(self, sample: dict[str, Any], run: Any, once: bool, kept: bool = True) -> Answer:
        """What it says about a batch; ``run(model)`` gives features and table, or logits, of any network. ``once``: see
        :func:`said`; without ``kept`` it is neither looked up in the cache nor written to it."""
        options = self._options
        words = min(options.teacher_top_k, len(self._task.target_dictionary))
        if self._cache is not None and kept:
            rows = self._cache.rows(sample, lambda: said(self._run(run)[0], words, options.distill_temperature).rows)
            return Answer(rows, None)
        outputs, states = self._run(run)
        return said(outputs, words, options.distill_temperature, states, once)

    def flush(self) -> None:
        """Wait until what it said is on the disk."""
        if self._cache is not None:
            self._cache.flush()

    def _run(self, run: Any) -> tuple[tuple[Tensor, Tensor | None], LayerStates | None]:
        model = self.model
        with torch.no_grad():
            if not isinstance(model, SubnetHolder):
                return run(model), None
            if self._subnet is None:
                self._subnet = model.select(model.architecture)
            with model.running(model.architecture, self._subnet):
                if self._options.distill_hidden or self._options.distill_attention:
                    return with_states(model, lambda: run(model))
                return run(model), None


def _check_lengths(path: Path, teacher: Any, student: Any, block: int | None) -> None:
    theirs, ours = (_tuple(model.max_positions()) for model in (teacher, student))
    if block:  # to which tasks of one language cut their text
        ours = tuple(min(length, block) for length in ours)
    for their, our in zip(theirs, ours, strict=False):
        if their < our:
            raise ConfigError(
                f"--teacher {path} reads sentences of {theirs} tokens at most, and the student of {ours}; lower"
                " --max-source-positions, --max-target-positions or --tokens-per-sample to the teacher's"
            )


def _tuple(positions: Any) -> tuple[int, ...]:
    return tuple(positions) if isinstance(positions, tuple | list) else (positions,)
