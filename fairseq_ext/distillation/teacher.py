"""Frozen teacher from a checkpoint, and its outputs.

Layers are identified by side, index in the supernet and sublayer, such as ``("encoder", 2, "self_attn")``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from fairseq.tasks import TASK_REGISTRY
from torch import Tensor, nn

from fairseq_ext.checkpoint import load_network, read_state, settings_errors
from fairseq_ext.compat import in_groups, options_in
from fairseq_ext.data import options_of
from fairseq_ext.distillation.cache import SampleCache
from nas_core.errors import CheckpointError, ConfigError
from nas_core.files.reading import real_path
from nas_core.layers.depth import kept_layers
from nas_core.layers.weights import named_tensors
from nas_core.random_streams import own_streams
from nas_core.supernet.holder import SubnetHolder
from nas_core.supernet.teacher.losses import TopK, hidden_loss, top_k
from nas_core.supernet.teacher.projected import (
    Probabilities,
    Projection,
    probabilities_of,
    projected_probabilities,
    projected_top_k,
)
from nas_core.supernet.teacher.taps import Taps

_log = logging.getLogger(__name__)

Result = TypeVar("Result")
Layer = tuple[str, int, str]
_LAYER = re.compile(r"(\w*?)_?layers\.(\d+)\.(\w+)\.(in_proj|out_proj)\.weight")


class LayerStates(NamedTuple):
    """Activations (B, T, C) of the layers of a network."""

    hidden: dict[Layer, Tensor]
    """Inputs of self-attention."""
    attention: dict[Layer, Tensor]
    """Outputs of attention."""


class TeacherOutput(NamedTuple):
    """Output of a teacher for one batch."""

    rows: Probabilities | TopK | Projection
    """Probabilities of words for each target token."""
    states: LayerStates | None
    """Activations, if they are compared."""


def teacher_output(
    outputs: tuple[Tensor, Tensor | None],
    count: int,
    temperature: float,
    states: LayerStates | None = None,
    defer: bool = False,
) -> TeacherOutput:
    """Convert the outputs of a network to a teacher's output.

    Args:
        outputs: features and output embeddings, or logits and None.
        count: number of most probable words to keep; 0: all.
        defer: compute the probabilities later, together with those of the student.
    """
    x, table = outputs
    if table is None:
        return TeacherOutput(
            top_k(x, count, temperature) if count else probabilities_of(x.detach(), temperature), states
        )
    x, table = x.detach(), table.detach()
    if count:
        return TeacherOutput(projected_top_k(x, table, count, temperature), states)
    rows = Projection(x, table, temperature) if defer else projected_probabilities(x, table, temperature)
    return TeacherOutput(rows, states)


class FileTeacher:
    """Frozen network of a checkpoint as a teacher.

    Args:
        options: a :class:`~fairseq_ext.distillation.criterion.DistillationConfig`.
    """

    def __init__(self, path: Path, task: Any, options: Any, student: Any) -> None:
        self._options = options
        self._words = min(options.teacher_top_k, len(task.target_dictionary))
        self.model = open_teacher(path, task)
        theirs, ours = (_positions(model) for model in (self.model, student))
        if block := getattr(options_of(task), "tokens_per_sample", None):  # tasks of one language cut their text
            ours = tuple(min(length, block) for length in ours)
        if any(their < our for their, our in zip(theirs, ours, strict=False)):
            raise ConfigError(
                f"--teacher {path} supports at most {theirs} tokens per sentence, but the student {ours}; lower"
                " --max-source-positions, --max-target-positions or --tokens-per-sample to these lengths"
            )
        self._compares_layers = bool(options.distill_hidden or options.distill_attention)
        if self._compares_layers:
            check_one_origin(student, self.model, str(path))
        self._cache: SampleCache | None = None
        if options.teacher_cache:
            self._cache = SampleCache(
                Path(options.teacher_cache), task, self.model, self._words, options.distill_temperature
            )
        like = next(parameter for parameter in student.parameters() if parameter.is_floating_point())
        self.model.to(device=like.device, dtype=like.dtype)
        self._subnet = self.model.select(self.model.architecture) if isinstance(self.model, SubnetHolder) else None

    def output(self, sample: dict[str, Any], run: Any, defer: bool, cached: bool = True) -> TeacherOutput:
        """Return the teacher's output for a batch.

        Args:
            run: function that runs a network on the batch.
            defer: as for :func:`teacher_output`.
            cached: use the cache, if there is one.
        """
        temperature = self._options.distill_temperature
        if self._cache is not None and cached:
            rows = self._cache.rows(sample, lambda: teacher_output(self._run(run)[0], self._words, temperature).rows)
            return TeacherOutput(rows, None)
        outputs, states = self._run(run)
        return teacher_output(outputs, self._words, temperature, states, defer)

    def flush(self) -> None:
        if self._cache is not None:
            self._cache.flush()

    def _run(self, run: Any) -> tuple[tuple[Tensor, Tensor | None], LayerStates | None]:
        model: Any = self.model
        with torch.no_grad():
            if self._subnet is None:
                return run(model), None
            with model.running(model.architecture, self._subnet):
                return with_states(model, lambda: run(model)) if self._compares_layers else (run(model), None)


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
        if kind is None or _base(kind) is not _base(type(task)):
            expected = next((name for name, other in TASK_REGISTRY.items() if other is type(task)), "this one")
            raise ConfigError(f"--teacher {path} was trained with --task {name}; expected a model of --task {expected}")
        folder = str(settings.get("data") or "").split(":")[0]
    own_data = bool(folder) and Path(folder).is_dir()
    if not own_data:
        _log.warning(
            "the teacher's data folder %s does not exist, so only the sizes of its dictionaries are checked", folder
        )
    try:
        with own_streams(0):  # the student's random numbers do not depend on its teacher
            own_task, model = load_network(path, state, None if own_data else options_of(task).data)
    except CheckpointError as error:
        if own_data:
            raise
        raise CheckpointError(f"{error}; the teacher must have the dictionaries of --data") from None
    for side in ("source", "target"):
        _check_words(path, side, own_task, task)
    if getattr(getattr(model, "decoder", None), "adaptive_softmax", None) is not None:
        raise ConfigError(
            f"--teacher {path} has an adaptive softmax, which is not supported; give a teacher without one"
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
    if theirs is not None and ours is not None and theirs != ours:
        difference = next(
            (
                f"{theirs[i]!r} in the teacher, {ours[i]!r} in the data"
                for i in range(len(ours))
                if theirs[i] != ours[i]
            ),
            "equal",
        )
        raise ConfigError(
            f"--teacher {path} has a {side} dictionary of {len(theirs)} symbols, but the data has {len(ours)} (first"
            f" difference: {difference}); give a teacher that was trained with the dictionaries of this data"
        )


# -- layers ------------------------------------------------------------------------------------------------------------


def with_states(model: Any, call: Callable[[], Result]) -> tuple[Result, LayerStates]:
    """Return the result of ``call``, which runs the model once, and the activations of the model."""
    subnet = model.active_subnet()
    matches = {name: (match, tensor) for name, tensor in named_tensors(subnet) if (match := _LAYER.fullmatch(name))}
    indices: dict[str, set[int]] = {}
    for match, _ in matches.values():
        indices.setdefault(match[1], set()).add(int(match[2]))
    numbers = {side: _layer_numbers(model, side, len(layers)) for side, layers in indices.items()}
    weights = {name: tensor for name, (_, tensor) in matches.items()}
    with model.running(model.architecture, subnet), Taps(weights, outputs=True) as taps:
        result = call()
    states = LayerStates({}, {})
    for name, (match, _) in matches.items():
        layer = match[1], numbers[match[1]][int(match[2])], match[3]
        if match[4] == "in_proj" and taps.inputs[name]:
            states.hidden[layer] = taps.inputs[name][0]
        elif match[4] == "out_proj" and taps.outputs[name]:
            states.attention[layer] = taps.outputs[name][0]
    return result, states


def _layer_numbers(model: Any, side: str, depth: int) -> list[int]:
    kept = (getattr(model.args, "kept_layers", None) or {}).get(side)  # of an extracted network
    if kept is not None:
        return list(kept)
    order = getattr(model.net.config, f"{side}_order" if side else "layer_order", ()) or ()
    return kept_layers(range(max([depth, *order]) + 1), depth, order)


def differences(student: dict[Layer, Tensor], teacher: dict[Layer, Tensor], masks: dict[str, Tensor]) -> Tensor:
    """Return the mean squared difference of normalised activations between the common layers.

    Args:
        masks: encoder or decoder -> mask (B, T), False at padding.
    """
    shared = [layer for layer in student if layer in teacher]
    return torch.stack([hidden_loss(student[layer], teacher[layer], masks[layer[0]]) for layer in shared]).mean()


def check_one_origin(student: Any, teacher: Any, path: str) -> None:
    """Raise a ConfigError unless teacher and student originate from one supernet, with the same order of channels."""
    need = "--distill-hidden and --distill-attention need a teacher and a student from the same 'nas-ext elastic' file"
    if not (hasattr(teacher, "active_subnet") and hasattr(student, "active_subnet")):
        raise ConfigError(
            f"{need}, but --teacher {path} or the student is a model of fairseq; leave these options out, or convert"
            " the model with 'nas-ext elastic', and start teacher and student from that file"
        )
    origins = [getattr(model.args, "converted", None) for model in (student, teacher)]
    initial = [getattr(student.args, name, None) for name in ("finetune_from_model", "restore_file")]
    same = isinstance(origins[0], str) and origins[0] == origins[1]
    if not same and not any(file and real_path(file) == real_path(path) for file in initial):
        raise ConfigError(
            f"{need}, but --teacher {path} and the student are from different files; leave these options out, or start"
            " the student with --finetune-from-model from the file of the teacher"
        )
