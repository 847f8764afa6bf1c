"""Frozen teacher from a checkpoint, and its outputs."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from fairseq.tasks import TASK_REGISTRY
from torch import Tensor, nn

from fairseq_ext.checkpoint import load_network, read_state, settings_errors
from fairseq_ext.compat import in_groups, options_in
from fairseq_ext.data import options_of
from nas_core.errors import CheckpointError, ConfigError
from nas_core.random_streams import own_streams
from nas_core.supernet.holder import SubnetHolder
from nas_core.supernet.teacher.projected import Probabilities, probabilities_of

_log = logging.getLogger(__name__)


def teacher_output(outputs: tuple[Tensor, Tensor | None], temperature: float) -> Probabilities:
    """Convert the outputs of a network to a teacher's probabilities of words for each target token.

    Args:
        outputs: features and output embeddings, or logits and None.
    """
    x, table = outputs
    with torch.no_grad():
        return probabilities_of(x if table is None else x @ table.t(), temperature)


class FileTeacher:
    """Frozen network of a checkpoint as a teacher."""

    def __init__(self, path: Path, task: Any, temperature: float, student: Any) -> None:
        self._temperature = temperature
        self.model = open_teacher(path, task)
        expected, actual = (_positions(model) for model in (self.model, student))
        if block := getattr(options_of(task), "tokens_per_sample", None):  # tasks of one language cut their text
            actual = tuple(min(length, block) for length in actual)
        if any(limit < length for limit, length in zip(expected, actual, strict=False)):
            raise ConfigError(
                f"--teacher {path} supports at most {expected} tokens per sentence, but the student {actual}; lower"
                " --max-source-positions, --max-target-positions or --tokens-per-sample to these lengths"
            )
        like = next(parameter for parameter in student.parameters() if parameter.is_floating_point())
        self.model.to(device=like.device, dtype=like.dtype)
        self._subnet = self.model.select(self.model.architecture) if isinstance(self.model, SubnetHolder) else None

    def output(self, run: Any) -> Probabilities:
        """Return the teacher's output for a batch.

        Args:
            run: function that runs a network on the batch.
        """
        model: Any = self.model
        with (
            torch.no_grad(),
            nullcontext() if self._subnet is None else model.use_subnet(model.architecture, self._subnet),
        ):
            return teacher_output(run(model), self._temperature)


def _positions(model: Any) -> tuple[int, ...]:
    positions = model.max_positions()
    return tuple(positions) if isinstance(positions, tuple | list) else (positions,)


def open_teacher(path: Path, task: Any) -> nn.Module:
    """Load the network of a checkpoint (of a supernet, the largest subnet) without gradients.

    Args:
        task: task of the student; the teacher must have the same task and dictionaries.
    """
    if not path.is_file():
        raise ConfigError(f"--teacher {path} does not exist; give a checkpoint of fairseq-train, or 'largest'")
    with settings_errors(path):
        state = in_groups(read_state(path, mmap=True))
        settings = options_in((state.get("cfg") or {}).get("task"))
        name = str(settings.get("_name"))
        kind = TASK_REGISTRY.get(name)
        if kind is None or _base_task(kind) is not _base_task(type(task)):
            expected = next((name for name, other in TASK_REGISTRY.items() if other is type(task)), "this one")
            raise ConfigError(f"--teacher {path} was trained with --task {name}; expected a model of --task {expected}")
        folder = str(settings.get("data") or "").split(":")[0]
    has_data = bool(folder) and Path(folder).is_dir()
    if not has_data:
        _log.warning(
            "the teacher's data folder %s does not exist, so only the sizes of its dictionaries are checked", folder
        )
    try:
        with own_streams(0):  # the student's random numbers do not depend on its teacher
            teacher_task, model = load_network(path, state, None if has_data else options_of(task).data)
    except CheckpointError as error:
        if has_data:
            raise
        raise CheckpointError(f"{error}; the teacher must have the dictionaries of --data") from None
    for side in ("source", "target"):
        _check_dictionary(path, side, teacher_task, task)
    if getattr(getattr(model, "decoder", None), "adaptive_softmax", None) is not None:
        raise ConfigError(
            f"--teacher {path} has an adaptive softmax, which is not supported; give a teacher without one"
        )
    if isinstance(model, SubnetHolder):
        model.eval_architecture = model.space.largest()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    _log.info("teacher: %s of %s, %.1f M parameters", type(model).__name__, path, parameters / 1e6)
    return model.requires_grad_(False)  # type: ignore[no-any-return]


def _base_task(kind: type[Any]) -> type[Any]:
    registered = set(TASK_REGISTRY.values())
    return [parent for parent in kind.__mro__ if parent in registered or parent is kind][-1]


def _check_dictionary(path: Path, side: str, teacher: Any, student: Any) -> None:
    expected, actual = (getattr(task, f"{side}_dictionary", None) for task in (teacher, student))
    if expected is not None and actual is not None and expected != actual:
        difference = next(
            (
                f"{expected[i]!r} in the teacher, {actual[i]!r} in the data"
                for i in range(len(actual))
                if expected[i] != actual[i]
            ),
            "equal",
        )
        raise ConfigError(
            f"--teacher {path} has a {side} dictionary of {len(expected)} symbols, but the data has {len(actual)}"
            f" (first difference: {difference}); give a teacher that was trained with the dictionaries of this data"
        )
