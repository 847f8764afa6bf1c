"""Inputs and outputs of a subnet's layers, by layer number in the supernet."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.files.reading import real_path
from nas_core.layers.depth import kept_layers
from nas_core.layers.weights import named_tensors
from nas_core.supernet.teacher.losses import hidden_loss
from nas_core.supernet.teacher.taps import Taps

Result = TypeVar("Result")
_LAYER = re.compile(r"(\w*?)_?layers\.(\d+)\.(\w+)\.(in_proj|out_proj)\.weight")


class LayerStates(NamedTuple):
    """Tensors (B, T, C) by side, layer number and part, such as ``("encoder", 2, "self_attn")``."""

    hidden: dict[tuple[str, int, str], Tensor]
    """Inputs of self-attention."""
    attention: dict[tuple[str, int, str], Tensor]
    """Outputs of attention."""


def with_states(model: Any, call: Callable[[], Result]) -> tuple[Result, LayerStates]:
    """Return the result of ``call``, which runs the model once, and the layer states."""
    subnet = model.active_subnet()
    places: dict[str, tuple[str, int, str]] = {}
    weights: dict[str, Tensor] = {}
    for name, tensor in named_tensors(subnet):
        if match := _LAYER.fullmatch(name):
            places[name] = match[1], int(match[2]), match[3]
            weights[name] = tensor
    depths = {
        side: 1 + max(index for other, index, _ in places.values() if other == side) for side, _, _ in places.values()
    }
    numbers = {side: _numbers(model, side, depth) for side, depth in depths.items()}
    with model.running(model.architecture, subnet), Taps(weights, outputs=True) as taps:
        result = call()
    states = LayerStates({}, {})
    for name, (side, index, part) in places.items():
        key = side, numbers[side][index], part
        if name.endswith("in_proj.weight") and taps.inputs[name]:
            states.hidden[key] = taps.inputs[name][0]
        elif name.endswith("out_proj.weight") and taps.outputs[name]:
            states.attention[key] = taps.outputs[name][0]
    return result, states


def _numbers(model: Any, side: str, depth: int) -> list[int]:
    kept = (getattr(model.args, "kept_layers", None) or {}).get(side)  # of an extracted network
    if kept is not None:
        return list(kept)
    order = getattr(model.net.config, f"{side}_order" if side else "layer_order", ()) or ()
    return kept_layers(range(max([depth, *order]) + 1), depth, order)


def differences(
    student: dict[tuple[str, int, str], Tensor], teacher: dict[tuple[str, int, str], Tensor], masks: dict[str, Tensor]
) -> Tensor:
    """Return the mean difference per token of shared layers; ``masks`` (B, T) are True at tokens."""
    shared = [key for key in student if key in teacher]
    return torch.stack([hidden_loss(student[key], teacher[key], masks[key[0]]) for key in shared]).mean()


def check_one_origin(student: Any, teacher: Any, path: str) -> None:
    """Check that both networks have the same channel order."""
    what = (
        "--distill-hidden and --distill-attention compare the layers of networks that come from one 'nas-ext elastic'"
    )
    if not (hasattr(teacher, "active_subnet") and hasattr(student, "active_subnet")):
        raise ConfigError(f"{what}; --teacher {path} or the student is a model of fairseq's own: drop them, or give the"
                          " supernet that was made of it as the teacher")  # fmt: skip
    origins = [getattr(model.args, "taken_over", None) for model in (student, teacher)]
    begun = [getattr(student.args, name, None) for name in ("finetune_from_model", "restore_file")]
    same = isinstance(origins[0], str) and origins[0] == origins[1]
    if not same and not any(file and real_path(file) == real_path(path) for file in begun):
        raise ConfigError(
            f"{what}; --teacher {path} and the student are of different ones: drop them, or begin with"
            " --finetune-from-model from the file of that teacher; from a subnet of it only if 'nas-ext elastic' made"
            " the teacher"
        )
