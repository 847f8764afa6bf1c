"""Subnets of language models as fairseq checkpoints."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from torch import Tensor

from fairseq_ext.checkpoint import keep_layer_numbers, plain_task, write_network
from fairseq_ext.taught import without_teacher
from nas_core.space import Architecture

__all__ = ["STATIC", "TASK", "write_subnet"]

STATIC = "hat_transformer_lm"
"""The name of ``--arch`` of static networks; all options are stored, so that it adds none."""
TASK = "language_modeling"


def write_subnet(state: dict[str, Any], weights: dict[str, Tensor], architecture: Architecture, path: Path) -> None:
    """A checkpoint of the static subnet: the supernet's settings with this architecture and no experts, the collapsed
    weights, no optimizer state. ``fairseq-generate`` and ``fairseq-eval-lm`` load it, ``fairseq-train
    --finetune-from-model`` trains on."""
    settings = copy.deepcopy(state["cfg"])
    args = settings["model"]
    vars(args).update(arch=STATIC, mos="none", subnet=None, subnet_json=json.dumps(architecture.to_dict()))
    keep_layer_numbers(args, architecture)
    args.task = TASK
    settings["task"] = plain_task(settings.get("task"), TASK)
    without_teacher(settings)
    write_network(state, settings, {f"net.{name}": tensor for name, tensor in weights.items()}, path)
