"""Numbers for the dimensions that an ONNX model leaves open."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from nas_core.errors import ConfigError
from nas_core.graph.graph import GraphError
from nas_core.graph.onnx.network import Shape

Shapes = Mapping[str, Sequence[int] | int]
Dim = int | str | None
"""One dimension of a declared shape: a number, the name of an open dimension, or neither."""


def bind_shapes(
    model: Any, name: str, parameters: Collection[str], shapes: Shapes | None, batch: int | None
) -> tuple[str, ...]:
    """Set all dimensions of the inputs of a ``ModelProto`` in place and return the inputs' names. What the file says of
    tensors in between is kept where it still holds.

    Args:
        parameters: inputs that are none.
        shapes: a shape for an input (or for any tensor whose shape cannot be inferred), or a number for the name of an
            open dimension.
        batch: first dimension of all inputs whose shape is not given, whatever the file says.

    Raises:
        ConfigError: a name that the model does not have, or no shape.
        GraphError: a dimension stays open.
    """
    graph = model.graph
    inputs = {tensor.name: tensor for tensor in graph.input if tensor.name not in parameters}
    declared = {tensor: _dims(value, name) for tensor, value in inputs.items()}
    given, symbols = _checked(shapes or {}, batch)
    known = {output for node in graph.node for output in node.output} | set(declared)
    names = {dim for dims in declared.values() if dims for dim in dims if isinstance(dim, str)}
    if strange := [key for key in given if key not in known] + [key for key in symbols if key not in names]:
        raise ConfigError(
            f"{name} has no tensor and no open dimension {strange[0]!r}; its inputs are {_described(declared)}"
        )
    bound: dict[str, list[Dim]] = {}
    overridden = False
    for tensor, dims in declared.items():
        new: list[Dim] | None = list(given[tensor]) if tensor in given else dims and list(dims)
        if new is None:
            raise _open(f"{name}: input {tensor!r} has no shape", tensor)
        if dims is not None and len(dims) != len(new):
            raise ConfigError(f"shape {tuple(new)} for input {tensor!r} of {name}; expected {len(dims)} dimensions")
        if batch is not None and new and tensor not in given:
            new[0] = batch
        for old, value in zip(dims or (), new, strict=False):
            if isinstance(old, str) and isinstance(value, int) and symbols.setdefault(old, value) != value:
                raise ConfigError(f"dimension {old!r} of {name} is {symbols[old]} and {value}; expected one number")
            overridden |= isinstance(old, int) and old != value
        bound[tensor] = new
    for tensor, dims in bound.items():
        final = [symbols.get(dim, dim) if isinstance(dim, str) else dim for dim in dims]
        if open_dims := [str(dim or "?") for dim in final if not isinstance(dim, int)]:
            what = f"{name}: dimension {open_dims[0]} of input {tensor!r} {_text(dims)} has no number"
            raise _open(what, tensor, dims, batch=final[0] == open_dims[0])
        _set(inputs[tensor], tuple(int(dim) for dim in final if dim is not None))
    extra = {key: given[key] for key in given if key not in inputs}
    if symbols or overridden or extra:
        _settle(graph, symbols, overridden, extra)
    return tuple(inputs)


def _open(what: str, tensor: str, dims: Iterable[Dim] = (1, 3, 224, 224), batch: bool = False) -> GraphError:
    """The error for an input without numbers; in the example 1 stands for every open dimension."""
    sizes = [str(dim if isinstance(dim, int) else 1) for dim in dims]
    tuple_, typed = ", ".join(sizes) + "," * (len(sizes) == 1), ",".join(sizes) + "," * (len(sizes) == 1)
    return GraphError(
        f"{what}; give shapes={{{tensor!r}: ({tuple_})}} with your sizes{', or batch=1' if batch else ''}",
        command_line=f"{what}; give --shapes {tensor}={typed} with your sizes{', or --batch 1' if batch else ''}",
    )


def _checked(shapes: Shapes, batch: int | None) -> tuple[dict[str, Shape], dict[str, int]]:
    given: dict[str, Shape] = {}
    symbols: dict[str, int] = {}
    if not isinstance(shapes, Mapping):
        raise ConfigError(
            f"shapes are a {type(shapes).__name__}; expected shapes={{'input': (1, 3, 224, 224)}}",
            command_line=f"shapes are a {type(shapes).__name__}; expected --shapes input=1,3,224,224",
        )
    for key, value in shapes.items():
        sizes = _sizes(value)
        if sizes is None:
            what = f"shape {value!r} of {key!r}; expected whole numbers above 0"
            raise ConfigError(
                f"{what}, such as (1, 3, 224, 224)", command_line=f"{what}, such as --shapes {key}=1,3,224,224"
            )
        if isinstance(sizes, int):
            symbols[key] = sizes
        else:
            given[key] = sizes
    if batch is not None and not isinstance(_sizes(batch), int):
        what = f"is {batch!r}; expected a whole number above 0"
        raise ConfigError(f"batch {what}", command_line=f"--batch {what}")
    return given, symbols


def _sizes(value: Any) -> Shape | int | None:
    """Whole numbers above 0, or one; None where it is something else."""
    if isinstance(value, numbers.Integral):
        return int(value) if int(value) > 0 and value is not True else None
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return None
    sizes = [_sizes(size) for size in value]
    return tuple(size for size in sizes if isinstance(size, int)) if all(isinstance(s, int) for s in sizes) else None


def _settle(graph: Any, symbols: Mapping[str, int], overridden: bool, extra: Mapping[str, Shape]) -> None:
    """Keep of the shapes that the file states only those that are still true, and add those that were given."""
    kept = []
    for tensor in graph.value_info:
        if not overridden and tensor.name not in extra and _resolve(tensor, symbols):
            kept.append(tensor)
    if len(kept) < len(graph.value_info):
        copies = [type(tensor).FromString(tensor.SerializeToString()) for tensor in kept]
        del graph.value_info[:]
        graph.value_info.extend(copies)
    for tensor in graph.output:
        if tensor.type.HasField("tensor_type") and (overridden or not _resolve(tensor, symbols)):
            tensor.type.tensor_type.ClearField("shape")
    outputs = {tensor.name: tensor for tensor in graph.output}
    for key, shape in extra.items():
        _set(outputs[key] if key in outputs else graph.value_info.add(name=key), shape)


def _resolve(tensor: Any, symbols: Mapping[str, int]) -> bool:
    """Put numbers in place of names; False where one has none."""
    if not tensor.type.HasField("tensor_type"):
        return True
    for dim in tensor.type.tensor_type.shape.dim:
        if not dim.dim_value and not dim.HasField("dim_value"):
            if dim.dim_param not in symbols:
                return False
            dim.dim_value = symbols[dim.dim_param]
    return bool(tensor.type.tensor_type.HasField("shape"))


def _dims(tensor: Any, name: str) -> list[Dim] | None:
    kind = tensor.type
    if not kind.HasField("tensor_type"):
        raise GraphError(f"{name}: input {tensor.name!r} is no tensor; expected a network that is fed tensors")
    if not kind.tensor_type.HasField("shape"):
        return None
    return [
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else dim.dim_param or None
        for dim in kind.tensor_type.shape.dim
    ]


def _set(tensor: Any, shape: Shape) -> None:
    tensor_type = tensor.type.tensor_type
    tensor_type.elem_type = tensor_type.elem_type or 1
    tensor_type.ClearField("shape")
    tensor_type.shape.SetInParent()
    for size in shape:
        tensor_type.shape.dim.add(dim_value=size)


def _described(declared: Mapping[str, list[Dim] | None]) -> str:
    return ", ".join(f"{tensor} {_text(dims or [])}" for tensor, dims in declared.items()) or "none"


def _text(dims: Sequence[Dim]) -> str:
    return f"({', '.join(str(dim or '?') for dim in dims)})"
