"""Safe reading and writing of fairseq checkpoints."""

from __future__ import annotations

import contextlib
import json
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
from nas_core.errors import CheckpointError, DataError, NasExtError
from nas_core.files.archives import DAMAGED_ARCHIVE, check_archive
from nas_core.files.reading import check_regular
from nas_core.files.writing import atomic_output
from nas_core.layers.weights import check_finite
from nas_core.space import Architecture, SearchSpace
from nas_core.space.files import space_from_dict

_WRONG_SETTINGS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, OmegaConfBaseException, TypeError, ValueError,
)  # fmt: skip


def read_state(path: Path, mmap: bool = False) -> dict[str, Any]:
    """Read a checkpoint of fairseq, without executing code in it.

    Args:
        mmap: read tensors lazily; their checksums are verified by :func:`load_network`.

    Raises:
        CheckpointError: the file is damaged, or contains objects or settings that are not plain data.
    """
    prepare_fairseq()
    try:
        if not mmap:
            check_archive(path)
        state = torch.load(check_regular(path), map_location="cpu", weights_only=True, mmap=mmap)
    except (*DAMAGED_ARCHIVE, pickle.UnpicklingError) as error:
        raise _damaged(path, error) from None
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        raise CheckpointError(f"{path} has no model; expected a checkpoint of fairseq-train")
    _check_plain([state.get("args"), state.get("cfg")], path, set())
    return state


def _check_plain(value: Any, path: Path, visited: set[int]) -> None:
    # Interpolations such as ${oc.env:HOME} would read the environment.
    if isinstance(value, str) and "${" in value:
        raise CheckpointError(f"{path} has the setting {value[:60]!r}; expected values without interpolation (${{..}})")
    if isinstance(value, Namespace | dict | list | tuple) and id(value) not in visited:
        visited.add(id(value))
        content = vars(value) if isinstance(value, Namespace) else value
        for item in content.values() if isinstance(content, dict) else content:
            _check_plain(item, path, visited)


def _damaged(path: Path, error: Exception) -> CheckpointError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
    return CheckpointError(f"{path} cannot be read as a checkpoint ({reason}); it may be truncated")


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint of a model of this package; see :func:`read_state`."""
    state = read_state(path)
    model_arguments(state, str(path))
    return state


def model_arguments(state: dict[str, Any], path: str) -> Namespace:
    """Return the model options stored in a checkpoint of this package."""
    settings = state.get("cfg") or {}
    args = settings.get("model") if hasattr(settings, "get") else None
    if not isinstance(args, Namespace) or not hasattr(args, "search_space_json"):
        raise CheckpointError(
            f"{path} is not a checkpoint of this package; expected a model of --arch mos_*, hat_* or mformer_*, or a"
            " model of fairseq converted by 'nas-ext elastic'"
        )
    return args


def stored_space(text: Any) -> SearchSpace:
    return space_from_dict(json.loads(text), "checkpoint")


def stored_architecture(text: Any) -> Architecture:
    return Architecture(json.loads(text))


@contextlib.contextmanager
def settings_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except _WRONG_SETTINGS as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise CheckpointError(f"{path} has invalid settings ({reason}); give an undamaged copy") from error


def load_network(path: Path, state: dict[str, Any], data: str | None) -> tuple[Any, Any]:
    """Return the fairseq task and the model of a checkpoint, in evaluation mode.

    Args:
        state: content of the checkpoint.
        data: folder of ``fairseq-preprocess``; default: the one named in the checkpoint.
    """
    try:
        check_archive(path)
    except DAMAGED_ARCHIVE as error:
        raise _damaged(path, error) from None
    check_finite(state["model"], path)
    with settings_errors(path):
        config = config_of(state["cfg"])
        if data:
            config.task.data = data
            config.model.data = data
        folder = str(getattr(config.task, "data", None) or "(not in its settings)").split(":")[0]
    if not Path(folder).is_dir():
        raise DataError(f"data folder {folder} does not exist; give the folder of fairseq-preprocess as --data")
    try:
        models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(path)], state={**state, "cfg": config})
    except NasExtError:
        raise
    except Exception as error:
        if message := wrong_input(error):
            raise DataError(message) from None
        if not isinstance(error, (RuntimeError, *_WRONG_SETTINGS)):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise CheckpointError(
            f"the weights in {path} do not fit its settings and the dictionaries in {folder} ({reason[:200]}); give the"
            " data that it was trained on, or an undamaged copy"
        ) from None
    return task, models[0].eval()


def config_of(groups: dict[str, Any]) -> Any:
    """Convert groups of settings (``task``, ..) to fairseq's configuration; model options remain a namespace."""
    config = OmegaConf.create({**groups, "model": None}, flags={"allow_objects": True})
    with open_dict(config):
        config.model = groups["model"]
    return config


def write_network(
    state: dict[str, Any], settings: dict[str, Any], weights: dict[str, torch.Tensor], path: Path
) -> None:
    """Write a checkpoint without optimizer state.

    Args:
        state: content of the original checkpoint; its last ``optimizer_history`` is copied.
        settings: groups of fairseq's settings.
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
