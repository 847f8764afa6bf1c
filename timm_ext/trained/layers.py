"""What the layers of an image network compute while it runs, and which layers of two networks belong together.

Shapes: B batch, N tokens, C channels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from torch import Tensor

from nas_core.layers.depth import kept_layers
from nas_core.space import Architecture
from nas_core.supernet.teacher import Taps
from timm_ext.model import VisionModel


class Heard(NamedTuple):
    """Tensors (B, N, C) of each layer that ran, first to last."""

    hidden: tuple[Tensor, ...]
    """What its feed-forward part reads: the tokens after attention, normalised."""
    attention: tuple[Tensor, ...]
    """What its attention adds to the tokens."""

    def detached(self) -> Heard:
        """The same as targets, which no gradient reaches."""
        return Heard(*(tuple(tensor.detach() for tensor in tensors) for tensors in self))


@contextmanager
def listening(model: VisionModel, architecture: Architecture) -> Iterator[Callable[[], Heard]]:
    """Run one architecture inside the block; what it yields tells, after a pass, what the layers computed."""
    subnet = model.select(architecture)
    hidden = {f"hidden.{index}": layer.ffn.fc1.weight for index, layer in enumerate(subnet.layers)}
    attention = {f"attention.{index}": layer.self_attn.out_proj.weight for index, layer in enumerate(subnet.layers)}
    with (
        model.running(architecture, subnet),
        Taps(hidden, inputs=True, outputs=False) as read,
        Taps(attention, inputs=False, outputs=True) as given,
    ):
        yield lambda: Heard(
            tuple(read.inputs[name][-1] for name in hidden), tuple(given.outputs[name][-1] for name in attention)
        )


def layer_pairs(
    student: VisionModel, learns: Architecture, teacher: VisionModel, teaches: Architecture
) -> list[tuple[int, int]]:
    """For each layer that the student runs, the one of the teacher's that it is compared with, by their places.

    Supernets of as many layers have them in common: a layer belongs to itself. Otherwise (a subnet that was taken out)
    the student's layers are spread over the teacher's, last to last.
    """
    one, other = _running(student, learns), _running(teacher, teaches)
    if len(student.net.layers) == len(teacher.net.layers):
        return [(place, other.index(layer)) for place, layer in enumerate(one) if layer in other]
    return [(place, round((place + 1) * len(other) / len(one)) - 1) for place in range(len(one))]


def _running(model: VisionModel, architecture: Architecture) -> list[int]:
    every = range(len(model.net.layers))
    return kept_layers(every, architecture.number("layers"), model.net.config.layer_order)
