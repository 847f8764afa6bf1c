"""A frozen teacher from a checkpoint of the student's task and vocabulary."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, NamedTuple

import torch
from fairseq.tasks import TASK_REGISTRY
from torch import Tensor, nn

from fairseq_ext.checkpoint import load_network, read_state, settings_errors
from fairseq_ext.compat import in_groups, options_in
from fairseq_ext.data import options_of
from fairseq_ext.distillation.cache import SampleCache
from fairseq_ext.distillation.layers import LayerStates, check_one_origin, with_states
from nas_core.errors import CheckpointError, ConfigError
from nas_core.random_streams import own_streams
from nas_core.supernet.holder import SubnetHolder
from nas_core.supernet.teacher.losses import TopK, top_k
from nas_core.supernet.teacher.projected import (
    Probabilities,
    Projection,
    probabilities_of,
    projected_probabilities,
    projected_top_k,
)

_log = logging.getLogger(__name__)


class TeacherOutput(NamedTuple):
    """A teacher's output for a batch."""

    rows: Probabilities | TopK | Projection
    """Probabilities of the N rows."""
    states: LayerStates | None
    """Layer inputs and outputs, if they are compared."""


def teacher_output(
    outputs: tuple[Tensor, Tensor | None],
    kept: int,
    temperature: float,
    states: LayerStates | None = None,
    once: bool = False,
) -> TeacherOutput:
    """Convert a network's outputs to a teacher's output.

    Args:
        kept: number of most probable words to keep; 0 keeps all.
        once: defer the probabilities until the student's are computed.
    """
    x, table = outputs
    if table is None:
        return TeacherOutput(top_k(x, kept, temperature) if kept else probabilities_of(x.detach(), temperature), states)
    x, table = x.detach(), table.detach()
    if once and not kept:
        return TeacherOutput(Projection(x, table, temperature), states)
    rows = projected_top_k(x, table, kept, temperature) if kept else projected_probabilities(x, table, temperature)
    return TeacherOutput(rows, states)


class FileTeacher:
    """A checkpoint's network, not registered as a module of the criterion."""

    def __init__(self, path: Path, task: Any, options: Any) -> None:
        self.path, self._task, self._options = path, task, options
        self.model: nn.Module = open_teacher(path, task)
        self._subnet: Any = None
        self._cache: SampleCache | None = None
        self._ready = False

    def prepare(self, student: Any) -> None:
        """Check the student, open the cache and move to the student's device, before the first update."""
        if self._ready:
            return
        options = self._options
        theirs, ours = (_tuple(model.max_positions()) for model in (self.model, student))
        if block := getattr(options_of(self._task), "tokens_per_sample", None):  # tasks of one language cut their text
            ours = tuple(min(length, block) for length in ours)
        if any(their < our for their, our in zip(theirs, ours, strict=False)):
            raise ConfigError(
                f"--teacher {self.path} reads sentences of {theirs} tokens at most, and the student of {ours}; lower"
                " --max-source-positions, --max-target-positions or --tokens-per-sample to the teacher's"
            )
        if options.distill_hidden or options.distill_attention:
            check_one_origin(student, self.model, str(self.path))
        if options.teacher_cache:
            self._cache = SampleCache(
                Path(options.teacher_cache), self._task, self.model, options.teacher_top_k, options.distill_temperature
            )
        like = next(parameter for parameter in student.parameters() if parameter.is_floating_point())
        self.model.to(device=like.device, dtype=like.dtype)
        self._ready = True

    def answer(self, sample: dict[str, Any], run: Any, once: bool, cached: bool = True) -> TeacherOutput:
        """Return the output for a batch; ``run`` returns a network's outputs."""
        temperature = self._options.distill_temperature
        words = min(self._options.teacher_top_k, len(self._task.target_dictionary))
        if self._cache is not None and cached:
            rows = self._cache.rows(sample, lambda: teacher_output(self._run(run)[0], words, temperature).rows)
            return TeacherOutput(rows, None)
        outputs, states = self._run(run)
        return teacher_output(outputs, words, temperature, states, once)

    def flush(self) -> None:
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


def _tuple(positions: Any) -> tuple[int, ...]:
    return tuple(positions) if isinstance(positions, tuple | list) else (positions,)


def open_teacher(path: Path, task: Any) -> nn.Module:
    """Open a checkpoint's network, or the largest subnet of a supernet, without gradients.

    Raises:
        ConfigError: the file is missing, or has another task or vocabulary.
        CheckpointError: the file is damaged.
    """
    if not path.is_file():
        raise ConfigError(f"--teacher {path} is no file; give a checkpoint of fairseq-train, or 'largest'")
    with settings_errors(path):
        state = in_groups(read_state(path, mmap=True))
        settings = options_in((state.get("cfg") or {}).get("task"))
        name = str(settings.get("_name") or settings.get("task") or "")
        kind = TASK_REGISTRY.get(name)
        if kind is None or _base(kind) is not _base(type(task)):
            expected = next((known for known, other in TASK_REGISTRY.items() if other is type(task)), "this one")
            raise ConfigError(f"--teacher {path} was trained with --task {name}; expected a model of --task {expected}")
        settings = {**settings, "_name": name}
        if settings.get("stability_architectures"):  # a ranking of its own would stop the student's training
            settings["stability_architectures"] = 0
        state = {**state, "cfg": {**state["cfg"], "task": settings}}
        folder = str(settings.get("data") or "").split(":")[0]
    own_data = bool(folder) and Path(folder).is_dir()
    if not own_data:
        _log.warning(
            "the teacher's data folder %s is not there: only the sizes of its dictionaries are compared", folder
        )
    try:
        with own_streams(0):  # the student's random numbers do not depend on its teacher
            own_task, model = load_network(path, state, None if own_data else options_of(task).data)
    except CheckpointError as error:
        if own_data:
            raise
        raise CheckpointError(f"{error}; a teacher must have the vocabulary of --data") from None
    for side in ("source", "target"):
        _check_words(path, side, own_task, task)
    if getattr(getattr(model, "decoder", None), "adaptive_softmax", None) is not None:
        raise ConfigError(
            f"--teacher {path} has an adaptive softmax, which gives no logits; give a teacher without one"
        )
    if isinstance(model, SubnetHolder):
        model.eval_architecture = model.space.largest()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    _log.info("teacher: %s of %s, %.1f M parameters", type(model).__name__, path, parameters / 1e6)
    return model.requires_grad_(False)  # type: ignore[no-any-return]


def _base(kind: type[Any]) -> type[Any]:
    registered = set(TASK_REGISTRY.values())
    return [parent for parent in kind.__mro__ if parent in registered or parent is kind][-1]


def _check_words(path: Path, side: str, teacher: Any, student: Any) -> None:
    theirs, ours = (getattr(task, f"{side}_dictionary", None) for task in (teacher, student))
    if theirs is None or ours is None or theirs == ours:
        return
    if len(theirs) != len(ours):
        difference = f"{len(theirs)} symbols, here {len(ours)}"
    else:
        index = next((i for i in range(len(ours)) if theirs[i] != ours[i]), 0)
        difference = f"its symbol {index} is {theirs[index]!r}, here {ours[index]!r}"
    raise ConfigError(
        f"--teacher {path} has another {side} vocabulary: {difference}; give a teacher that was trained with the"
        " dictionaries of this data"
    )
