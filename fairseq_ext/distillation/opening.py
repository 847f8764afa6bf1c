"""A fairseq checkpoint opened as a teacher: a frozen network of the same task and the same words."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq.tasks import TASK_REGISTRY
from torch import nn

from fairseq_ext.checkpoint import load_network, read_state, settings_errors
from fairseq_ext.compat import in_groups, options_in
from fairseq_ext.data import options_of
from nas_core.errors import CheckpointError, ConfigError
from nas_core.random_streams import own_streams
from nas_core.supernet.active import SubnetHolder

_log = logging.getLogger(__name__)


def open_teacher(path: Path, task: Any) -> nn.Module:
    """The network of a checkpoint, in evaluation mode and without gradients; of a supernet the largest subnet runs.

    Args:
        path: a checkpoint of fairseq-train.
        task: that of the student.

    Raises:
        ConfigError: there is no such file, or it is of another task or of other words. CheckpointError: it is damaged.
        DataError: a file of its own data folder is missing.
    """
    if not path.is_file():
        raise ConfigError(f"--teacher {path} is no file; give a checkpoint of fairseq-train, or 'largest'")
    with settings_errors(path):
        state = in_groups(read_state(path, mmap=True))
        settings = _task_settings(state)
        _check_kind(path, settings, task)
        state = {**state, "cfg": {**state["cfg"], "task": settings}}
        folder = str(settings.get("data") or "").split(":")[0]
    own_data = bool(folder) and Path(folder).is_dir()
    if not own_data:
        _log.warning(
            "the teacher's data folder %s is not there: only the sizes of its dictionaries are compared", folder
        )
    if settings.get("stability_architectures"):  # a ranking of its own would stop the student's training
        state["cfg"]["task"] = {**settings, "stability_architectures": 0}
    try:
        with own_streams(0):  # what the student draws does not depend on its teacher
            own_task, model = load_network(path, state, None if own_data else options_of(task).data)
    except CheckpointError as error:
        if own_data:
            raise
        raise CheckpointError(f"{error}; a teacher must have the vocabulary of --data") from None
    for side in ("source", "target"):
        _check_words(path, side, own_task, task)
    _check_logits(path, model)
    if isinstance(model, SubnetHolder):
        model.eval_architecture = model.space.largest()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    _log.info("teacher: %s of %s, %.1f M parameters", type(model).__name__, path, parameters / 1e6)
    return model.requires_grad_(False)  # type: ignore[no-any-return]


def _task_settings(state: dict[str, Any]) -> dict[str, Any]:
    """The options of a checkpoint's task by name, however fairseq stored them."""
    settings = options_in((state.get("cfg") or {}).get("task"))
    return {**settings, "_name": settings.get("_name") or settings.get("task")}


def _check_kind(path: Path, settings: Mapping[str, Any], task: Any) -> None:
    name = str(settings.get("_name") or settings.get("task") or "")
    kind = TASK_REGISTRY.get(name)
    if kind is None or _base(kind) is not _base(type(task)):
        own = next((known for known, registered in TASK_REGISTRY.items() if registered is type(task)), "this one")
        raise ConfigError(f"--teacher {path} was trained with --task {name}; expected a model of --task {own}")


def _base(kind: type[Any]) -> type[Any]:
    """The most general task that a task is one of."""
    known = set(TASK_REGISTRY.values())
    return [parent for parent in kind.__mro__ if parent in known or parent is kind][-1]


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


def _check_logits(path: Path, model: Any) -> None:
    if getattr(getattr(model, "decoder", None), "adaptive_softmax", None) is not None:
        raise ConfigError(
            f"--teacher {path} has an adaptive softmax, which gives no logits; give a teacher without one"
        )
