"""Reading fairseq checkpoints safely, and writing a network as one."""

from __future__ import annotations

import contextlib
import pickle
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from omegaconf import OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from fairseq_ext.compat import prepare_fairseq, wrong_input
from fairseq_ext.options import model_arguments
from nas_core.errors import CheckpointError, DataError, NasExtError
from nas_core.files import DAMAGED_ARCHIVE, atomic_output, check_archive
from nas_core.layers.weights import check_finite

MOST_SETTINGS, DEEPEST_SETTINGS = 100_000, 20
"""Values among the settings of a checkpoint; fairseq writes some hundreds, in few levels."""


def read_state(path: Path, mmap: bool = False) -> dict[str, Any]:
    """The content of a checkpoint that fairseq-train wrote of any model, plain data and tensors only; with ``mmap`` a
    tensor is read when it is used, and checksums are checked by :func:`load_network` alone.

    Raises:
        CheckpointError: the file is truncated, no checkpoint, or holds objects or settings that are not allowed.
    """
    prepare_fairseq()
    try:
        check_archive(path, whole=not mmap)
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    except (*DAMAGED_ARCHIVE, pickle.UnpicklingError) as error:
        raise damaged(path, error) from None
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        raise CheckpointError(f"{path} holds no model; expected a checkpoint written by fairseq-train")
    _check_settings(state, path)
    return state


def damaged(path: str | Path, error: Exception) -> CheckpointError:
    """Return the error of a file that cannot be read."""
    reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
    return CheckpointError(f"{path} cannot be read as a checkpoint ({reason}); it may be truncated")


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The same of a model of this plug-in.

    Raises:
        CheckpointError: also if it is of another model.
    """
    state = read_state(path)
    model_arguments(state, str(path))
    return state


@contextlib.contextmanager
def settings_errors(path: Path) -> Iterator[None]:
    """Turn what settings of other types or names raise in a block into a CheckpointError of one line."""
    try:
        yield
    except (
        ArithmeticError, AssertionError, AttributeError, LookupError, OmegaConfBaseException, TypeError, ValueError,
    ) as error:  # fmt: skip
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise CheckpointError(
            f"{path} has settings that fairseq cannot have written ({reason}); it is damaged"
        ) from error


def load_network(path: Path, state: dict[str, Any], data: str | None) -> tuple[Any, Any]:
    """The task and the model of a checkpoint's content, in evaluation mode; ``data`` is where its data folder is now.

    Raises:
        DataError: there is no such folder, or a file is missing in it. CheckpointError: weights and settings differ, or
            the weights are damaged.
    """
    try:
        check_archive(path)
    except DAMAGED_ARCHIVE as error:
        raise damaged(path, error) from None
    check_finite(state["model"], path)
    with settings_errors(path):
        config = OmegaConf.create({**state["cfg"], "model": None}, flags={"allow_objects": True})
        with open_dict(config):
            config.model = state["cfg"]["model"]
        if data:
            config.task.data = data
            config.model.data = data
        first = str(getattr(config.task, "data", None) or "(not in its settings)").split(":")[0]
    if not Path(first).is_dir():
        raise DataError(f"no data folder {first}; give the folder of fairseq-preprocess with --data")
    try:
        models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(path)], state={**state, "cfg": config})
    except NasExtError:
        raise
    except Exception as error:
        if message := wrong_input(error):
            raise DataError(message) from None
        if not isinstance(error, _UNFITTING):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise CheckpointError(
            f"{path} does not fit its own settings and dictionaries ({reason[:200]}); it may be damaged, or {first} is"
            " not the data it was trained on"
        ) from None
    return task, models[0].eval()


_UNFITTING = (
    RuntimeError, LookupError, AssertionError, TypeError, ValueError, AttributeError, ArithmeticError,
    OmegaConfBaseException,
)  # fmt: skip
"""What fairseq raises where settings or weights are wrong."""


def _check_settings(state: dict[str, Any], path: Path) -> None:
    """Refuse settings that ask for others, such as ``${oc.env:HOME}``: fairseq writes what they stood for, and a file
    must not bring what is in our environment into messages and other files. Refuse also what fairseq and OmegaConf
    would copy without end.
    """
    counts: dict[int, int] = {}
    for part in ("args", "cfg"):
        if _count(state.get(part), path, counts, 0) > MOST_SETTINGS:
            raise CheckpointError(
                f"{path} has more than {MOST_SETTINGS} settings; it is damaged, or of another program"
            )


def _count(value: Any, path: Path, counts: dict[int, int], depth: int) -> int:
    """How many values there are in one, a part that stands in several places counted in each; a part is read once."""
    if isinstance(value, str) and "${" in value:
        raise CheckpointError(f"{path} has a setting {value[:60]!r}; expected plain values, as fairseq-train writes")
    if not isinstance(value, Namespace | dict | list | tuple):
        return 1
    if id(value) not in counts:
        if depth > DEEPEST_SETTINGS:
            raise CheckpointError(f"{path} has settings {depth} levels deep, or one in itself; it is damaged")
        content = vars(value) if isinstance(value, Namespace) else value
        parts = content.values() if isinstance(content, dict) else content
        counts[id(value)] = 1 + sum(_count(part, path, counts, depth + 1) for part in parts)
    return counts[id(value)]


def write_network(
    state: dict[str, Any], settings: dict[str, Any], weights: dict[str, torch.Tensor], path: Path
) -> None:
    """A checkpoint from which training begins anew: no optimizer state.

    Args:
        state: what it was made from.
        settings: the groups of settings, as under ``cfg``.
        weights: of the model.
    """
    content = {
        "args": None,
        "cfg": settings,
        "model": {name: tensor.detach().cpu() for name, tensor in weights.items()},
        "criterion": None,
        "optimizer_history": state.get("optimizer_history", [])[-1:],
        "task_state": {},
        "extra_state": {"epoch": 0, "metrics": {}, "previous_training_time": 0},
        "last_optimizer_state": None,
    }
    with atomic_output(path) as temporary:
        torch.save(content, temporary)
