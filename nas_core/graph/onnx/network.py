"""The operators of an ONNX model in topological order, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from nas_core.graph.graph import GraphError

Shape = tuple[int, ...]

_WEIGHTS = {
    "Conv": (1, 2),
    "ConvTranspose": (1, 2),
    "ConvInteger": (1,),
    "Gemm": (1, 2),
    "BatchNormalization": (1, 2, 3, 4),
    "InstanceNormalization": (1, 2),
    "LayerNormalization": (1, 2),
    "GroupNormalization": (1, 2),
    "RMSNormalization": (1,),
    "PRelu": (1,),
    "LSTM": (1, 2, 3),
    "GRU": (1, 2, 3),
    "RNN": (1, 2, 3),
}
"""Places of an operator's weights among its inputs."""


class Operation(NamedTuple):
    """One operator; the name of an absent optional input or output is empty."""

    kind: str
    """Its ONNX operator type, after the domain where that is not ONNX's own: ``com.microsoft.Gelu``."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    settings: dict[str, Any]
    """ONNX attributes; graphs and tensors are left out."""

    def weights(self) -> tuple[int, ...]:
        """Places of inputs that are weights wherever they are constants."""
        return _WEIGHTS.get(self.kind, ())


@dataclass(frozen=True)
class Network:
    """All that is known of a model once its shapes are."""

    name: str
    operations: Sequence[Operation]
    """In topological order."""
    inputs: tuple[str, ...]
    """What is fed to it; parameters are none of them."""
    outputs: tuple[str, ...]
    shapes: Mapping[str, Shape]
    """Shapes of all tensors, as far as known."""
    constants: frozenset[str]
    """Tensors that are the same for all inputs of these shapes: parameters, and what follows from them and shapes."""
    stored: frozenset[str]
    """Those of them that the file holds, or that a Constant gives."""
    weights: frozenset[str]
    """Those constants that are arrays of real or quantised numbers, not indices or masks."""

    def shape(self, tensor: str, maker: str = "") -> Shape:
        """The shape of a tensor.

        Args:
            maker: the operator that gives it, for the message.

        Raises:
            GraphError: the shape is not known.
        """
        if tensor not in self.shapes:
            after = f", which {maker} gives," if maker else ""
            what = f"{self.name}: the shape of tensor {tensor!r}{after} is not known after shape inference; give it as"
            other = "or export the model for exactly these sizes, with its constants"
            raise GraphError(
                f"{what} shapes={{{tensor!r}: (1, 3, 224, 224)}} with its sizes, {other}",
                command_line=f"{what} --shapes {tensor}=1,3,224,224 with its sizes, {other}",
            )
        return self.shapes[tensor]


def operations(nodes: Iterable[Any]) -> list[Operation]:
    """From ``NodeProto`` messages; what the bodies of If, Loop and Scan read from outside is read by their operator."""
    made = []
    for node in nodes:
        settings, bodies = {}, []
        for attribute in node.attribute:
            kind = attribute.type
            if kind in _SETTINGS:
                settings[attribute.name] = _SETTINGS[kind](attribute)
            elif kind in _BODIES:
                bodies += _BODIES[kind](attribute)
        domain, operator = node.domain, node.op_type
        name = operator if domain in ("", "ai.onnx") else f"{domain}.{operator}"
        inputs = (*node.input, *_captured(bodies)) if bodies else tuple(node.input)
        made.append(Operation(name, inputs, tuple(node.output), settings))
    return made


_SETTINGS: dict[int, Callable[[Any], Any]] = {
    1: lambda a: a.f,
    2: lambda a: a.i,
    3: lambda a: a.s.decode("utf-8", "replace"),
    6: lambda a: tuple(a.floats),
    7: lambda a: tuple(a.ints),
}
"""By the number that AttributeProto gives a type."""
_BODIES: dict[int, Callable[[Any], list[Any]]] = {5: lambda a: [a.g], 10: lambda a: list(a.graphs)}


def _captured(bodies: list[Any]) -> list[str]:
    read: set[str] = set()
    own: set[str] = set()
    while bodies:
        body = bodies.pop()
        own.update(tensor.name for part in (body.input, body.initializer) for tensor in part)
        read.update(tensor.name for tensor in body.output)
        for inner in body.node:
            own.update(inner.output)
            read.update(inner.input)
            bodies += [g for a in inner.attribute if a.type in _BODIES for g in _BODIES[a.type](a)]
    return sorted(read - own - {""})


def parameter_inputs(graph: Any, listed: Iterable[Operation]) -> set[str]:
    """Inputs of a ``GraphProto`` that are weights: initializers, and what only serves as weights of convolutions,
    linear layers and normalisations, as in files whose weights were taken out."""
    stored = {tensor.name for tensor in graph.initializer}
    names = {tensor.name for tensor in graph.input} - stored
    weights: set[str] = set()
    others: set[str] = set()
    for op in listed:
        if not names.isdisjoint(op.inputs):
            places = op.weights()
            for place, tensor in enumerate(op.inputs):
                if tensor in names:
                    (weights if place in places else others).add(tensor)
    return stored | (weights - others)
