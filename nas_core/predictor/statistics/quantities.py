"""What an operation adds to a network, as numbers that mean the same in every search space."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nas_core.graph import Operation

__all__ = ["CLASSES", "QUANTITIES", "classes_of", "quantities_of"]

Array = NDArray[np.float64]
CHANNELS = 32
"""That a layer is taken to have, where depth-wise convolutions are weighed against those of all channels."""
QUANTITIES = (
    "convolutions", "weights", "receptive field", "spatial", "pooling", "identities", "average pooling", "halvings",
    "doublings",
)  # fmt: skip
"""Weights are in squares of the channels; the receptive field is what a layer adds to it, at its own resolution;
halvings are of the resolution, doublings of the channels."""
CLASSES = ("spatial", "pointwise", "pooling", "identity")


def quantities_of(operations: tuple[Operation, ...]) -> Array:
    """``(O, Q)`` for each operation its :data:`QUANTITIES`."""
    return np.array([_quantities(operation) for operation in operations])


def classes_of(operations: tuple[Operation, ...]) -> Array:
    """``(O, 4)``: 1 for the class of :data:`CLASSES` that an operation is of; what gives zeros is of none."""
    table = np.zeros((len(operations), len(CLASSES)))
    for row, operation in zip(table, operations, strict=True):
        if operation.kind != "none":
            row[_class(operation)] = 1.0
    return table


def _class(operation: Operation) -> int:
    if operation.kind in ("end", "identity"):
        return 3
    if operation.kind == "pooling":
        return 2
    return 0 if operation.kernel > 1 or operation.kind == "attention" else 1


def _quantities(operation: Operation) -> list[float]:
    layer = operation.kind in ("convolution", "linear", "attention")
    repeats, pools = operation.repeats if layer else 0, operation.kind == "pooling"
    reach = (operation.kernel - 1) * operation.dilation * (operation.repeats if layer else 1)
    return [
        repeats,
        repeats * _weights(operation),
        reach if layer or pools else 0,
        repeats * (_class(operation) == 0),
        pools,
        operation.kind == "identity",
        pools and operation.average,
        math.log2(operation.stride),
        math.log2(operation.channels),
    ]


def _weights(operation: Operation) -> float:
    if operation.kind == "attention":
        return 4.0
    window, inner = operation.kernel**2, operation.expansion
    if operation.groups:
        return window * inner / operation.groups
    pointwise = 1.0 if inner == 1 else 2 * inner
    return inner * window / CHANNELS + pointwise
