"""Operators of an ONNX model in topological order, with the shapes of their tensors."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from nas_core.graph.graph import GraphError

Shape = tuple[int, ...]

WEIGHTS = {
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
"""Positions of weights among the inputs of an operator."""


class Operation(NamedTuple):
    """An ONNX operator. Absent optional inputs and outputs have empty names."""

    kind: str
    """Operator type, with its domain unless it is ONNX's: ``com.microsoft.Gelu``."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    settings: dict[str, Any]
    """ONNX attributes, without graphs and tensors."""


@dataclass(frozen=True)
class Network:
    """An ONNX model with known shapes."""

    name: str
    operations: Sequence[Operation]
    """Operators in topological order."""
    inputs: tuple[str, ...]
    """Inputs that are not parameters."""
    outputs: tuple[str, ...]
    shapes: Mapping[str, Shape]
    constants: frozenset[str]
    """Tensors that depend only on parameters and shapes."""
    stored: frozenset[str]
    """Constants that are stored in the file, or come from a Constant operator."""
    weights: frozenset[str]
    """Constants with real or quantised numbers, not indices or masks."""

    def shape(self, tensor: str, maker: str = "") -> Shape:
        """Return the shape of a tensor.

        Args:
            maker: operator that computes the tensor, for error messages.

        Raises:
            GraphError: the shape is unknown.
        """
        if tensor not in self.shapes:
            origin = f" (output of {maker})" if maker else ""
            problem = f"{self.name}: the shape of tensor {tensor!r}{origin} cannot be inferred; give it as"
            alternative = "or export the model for exactly these sizes, with its constants"
            raise GraphError(
                f"{problem} shapes={{{tensor!r}: (1, 3, 224, 224)}} with its sizes, {alternative}",
                command_line=f"{problem} --shapes {tensor}=1,3,224,224 with its sizes, {alternative}",
            )
        return self.shapes[tensor]


def operations(nodes: Iterable[Any]) -> list[Operation]:
    """Return the operators of ``NodeProto`` messages.

    Inputs of If, Loop and Scan include the outer tensors that their bodies use.
    """
    result = []
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
        result.append(Operation(name, inputs, tuple(node.output), settings))
    return result


_SETTINGS: dict[int, Callable[[Any], Any]] = {
    1: lambda a: a.f,
    2: lambda a: a.i,
    3: lambda a: a.s.decode("utf-8", "replace"),
    6: lambda a: tuple(a.floats),
    7: lambda a: tuple(a.ints),
}
_BODIES: dict[int, Callable[[Any], list[Any]]] = {5: lambda a: [a.g], 10: lambda a: list(a.graphs)}


def _captured(bodies: list[Any]) -> list[str]:
    used: set[str] = set()
    inner_tensors: set[str] = set()
    while bodies:
        body = bodies.pop()
        inner_tensors.update(tensor.name for tensors in (body.input, body.initializer) for tensor in tensors)
        used.update(tensor.name for tensor in body.output)
        for inner in body.node:
            inner_tensors.update(inner.output)
            used.update(inner.input)
            bodies += [g for a in inner.attribute if a.type in _BODIES for g in _BODIES[a.type](a)]
    return sorted(used - inner_tensors - {""})


def parameter_inputs(graph: Any, operators: Iterable[Operation]) -> set[str]:
    """Return the names of initializers of a ``GraphProto``, and of inputs that are used only as weights of layers.

    Files without initializers have their parameters among the inputs.
    """
    stored = {tensor.name for tensor in graph.initializer}
    names = {tensor.name for tensor in graph.input} - stored
    weights: set[str] = set()
    activations: set[str] = set()
    for op in operators:
        weight_inputs = WEIGHTS.get(op.kind, ())
        for index, tensor in enumerate(op.inputs):
            if tensor in names:
                (weights if index in weight_inputs else activations).add(tensor)
    return stored | (weights - activations)


def sort_nodes(graph: Any, operators: list[Operation], name: str) -> list[Operation]:
    """Return the operators in topological order, and sort the nodes of the ``GraphProto`` in the same way."""
    fed = {tensor.name for tensors in (graph.input, graph.initializer) for tensor in tensors}
    producers = {output: index for index, op in enumerate(operators) for output in op.outputs if output}
    for op in operators:
        if missing := [tensor for tensor in op.inputs if tensor and tensor not in producers and tensor not in fed]:
            raise GraphError(
                f"{name}: input {missing[0]!r} of {op.kind} is not computed by any operator; the file is damaged"
                " or incomplete, export it again"
            )
    sources = [{producers[tensor] for tensor in op.inputs if tensor and tensor not in fed} for op in operators]
    if all(source < index for index, group in enumerate(sources) for source in group):
        return operators
    try:
        order = list(TopologicalSorter(dict(enumerate(sources))).static_order())
    except CycleError as error:
        cycle = " -> ".join(f"{operators[index].kind} {operators[index].outputs[0]!r}" for index in error.args[1][:4])
        raise GraphError(f"{name} has a cycle of operators ({cycle}); expected an acyclic graph") from None
    nodes = [copy.deepcopy(graph.node[index]) for index in order]
    del graph.node[:]
    graph.node.extend(nodes)
    return [operators[index] for index in order]


class Site(NamedTuple):
    """An operator with the shapes of its inputs and outputs."""

    kind: str
    settings: dict[str, Any]
    ins: tuple[Shape | None, ...]
    """Shapes of inputs, None for absent optional ones."""
    outs: tuple[Shape, ...]
    """Shapes of used outputs."""
    weight: tuple[bool, ...]
    """True for inputs that are arrays of parameters, not indices, masks, shapes or scalars."""

    @property
    def key(self) -> tuple[Hashable, ...]:
        return (self.kind, self.ins, self.outs, self.weight, *self.settings.items())

    def shape_of(self, index: int) -> Shape | None:
        return self.ins[index] if index < len(self.ins) else None

    def input(self, index: int = 0) -> Shape:
        return self.shape_of(index) or ()

    @property
    def out(self) -> Shape:
        return self.outs[0] if self.outs else ()

    @property
    def out_size(self) -> int:
        return math.prod(self.out)

    def filters(self) -> Shape:
        """Return a convolution's weight shape: (out, in / groups, ..), or (in, out / groups, ..) if transposed."""
        return self.input(3 if self.kind == "QLinearConv" else 1)

    def axis(self, default: int) -> int:
        """Return the attribute ``axis`` as a non-negative number."""
        axis = int(self.settings.get("axis", default))
        return axis + len(self.input()) if axis < 0 else axis


def site_of(op: Operation, network: Network) -> Site:
    shapes: list[Shape | None] = []
    weight: list[bool] = []
    for tensor in op.inputs:
        fixed = tensor in network.constants
        shape = network.shapes.get(tensor, ()) if fixed else network.shape(tensor) if tensor else None
        shapes.append(shape)
        weight.append(fixed and bool(shape) and tensor in network.weights)
    outs = tuple(network.shapes.get(output, ()) for output in op.outputs if output)
    return Site(op.kind, op.settings, tuple(shapes), outs, tuple(weight))


def einsum_sizes(site: Site) -> tuple[int, int]:
    """Return the product of all dimensions of an Einsum, and the product of the summed dimensions."""
    equation = str(site.settings.get("equation", "")).replace(" ", "")
    inputs, arrow, output = equation.partition("->")
    sizes: dict[str, int] = {}
    broadcast = 1
    for term, shape in zip(inputs.split(","), site.ins, strict=False):
        head, dots, tail = term.partition("...")
        shape = shape or ()
        sizes |= dict(zip(head, shape, strict=False))
        sizes |= dict(zip(reversed(tail), reversed(shape), strict=False))
        if dots:
            broadcast = max(broadcast, math.prod(shape[len(head) : len(shape) - len(tail)]))
    if not arrow:
        output = "".join(label for label in sizes if inputs.count(label) == 1)
    summed = math.prod(size for label, size in sizes.items() if label not in output)
    return math.prod(sizes.values()) * broadcast, summed


_BROADCAST = {"Add", "Sub", "Mul", "Div", "Pow", "Where", "Sum", "Mean", "Max", "Min"}


def check_fit(site: Site, name: str) -> None:
    """Raise ``GraphError`` if input shapes of elementwise operators, matrix products or convolutions do not match."""
    # Shape inference misses such errors if the file states the output shape.
    shapes = [shape for shape in site.ins if shape]
    if not _fits(site, shapes):
        sizes = " and ".join(map(str, shapes))
        raise GraphError(
            f"{name}: {site.kind} has inputs of incompatible shapes {sizes}; give the input sizes that the model was"
            " exported for, or export it for these sizes"
        )


def _fits(site: Site, shapes: list[Shape]) -> bool:
    if site.kind in _BROADCAST:
        old = {"axis", "broadcast"} & site.settings.keys()  # before opset 7 the second tensor could be at any axis
        return bool(old) or _broadcast(shapes)
    if len(shapes) < 2:
        return True
    first, second = site.input(0), site.input(1)
    if site.kind == "MatMul":
        return first[-1:] == second[-2:][:1] and _broadcast([first[:-2], second[:-2]])
    if site.kind == "Gemm" and len(first) == len(second) == 2:
        return first[0 if site.settings.get("transA") else 1] == second[1 if site.settings.get("transB") else 0]
    if site.kind == "Conv" and len(first) == len(second) > 2:
        return first[1] == second[1] * int(site.settings.get("group", 1))
    return True


def _broadcast(shapes: list[Shape]) -> bool:
    rank = max(map(len, shapes), default=0)
    columns = zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)
    return all(len({size for size in column if size != 1}) < 2 for column in columns)
