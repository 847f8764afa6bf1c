"""Reading fairseq checkpoints safely, and writing a subnet of a supernet as one of its own."""

from __future__ import annotations

import copy
import json
import pickle
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from fairseq.models import ARCH_MODEL_REGISTRY

from fairseq_ext.compat import prepare_fairseq
from fairseq_ext.options import model_arguments
from nas_core.errors import CheckpointError
from nas_core.files import atomic_output
from nas_core.space import Architecture

_TASK_OPTIONS = ("supernet_sampling", "valid_random", "select_checkpoint")


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The content of a fairseq checkpoint, plain data and tensors only.

    Raises:
        CheckpointError: the file is truncated, no checkpoint, or holds objects that are not allowed.
    """
    prepare_fairseq()
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, ValueError, OSError, KeyError, pickle.UnpicklingError) as error:
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise CheckpointError(f"{path} cannot be read as a checkpoint ({reason}); it may be truncated") from None
    if not isinstance(state, dict) or "model" not in state:
        raise CheckpointError(f"{path} holds no model; expected a checkpoint written by fairseq-train")
    model_arguments(state, str(path))
    return state


def write_subnet(
    state: dict[str, Any], weights: dict[str, torch.Tensor], architecture: Architecture, path: Path
) -> None:
    """A checkpoint of the static subnet: the supernet's settings with this architecture and no experts, the collapsed
    weights, no optimizer state. ``fairseq-generate`` loads it, ``fairseq-train --finetune-from-model`` trains on."""
    settings = copy.deepcopy(state["cfg"])
    args: Namespace = settings["model"]
    own = f"hat_transformer{args.arch.removeprefix('mos_transformer').removeprefix('hat_transformer')}"
    static = own if own in ARCH_MODEL_REGISTRY else "hat_transformer"  # all options are stored, the name adds none
    vars(args).update(arch=static, mos="none", subnet=None, subnet_json=json.dumps(architecture.to_dict()))
    args.task = "translation"
    task = settings.get("task")
    if isinstance(task, dict):
        task["_name"] = "translation"
        for option in _TASK_OPTIONS:
            task.pop(option, None)
    subnet = {
        "args": None,
        "cfg": settings,
        "model": {f"net.{name}": tensor for name, tensor in weights.items()},
        "criterion": None,
        "optimizer_history": state.get("optimizer_history", [])[-1:],
        "task_state": {},
        "extra_state": {"epoch": 0, "metrics": {}, "previous_training_time": 0},
        "last_optimizer_state": None,
    }
    with atomic_output(path) as temporary:
        torch.save(subnet, temporary)
