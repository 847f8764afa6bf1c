"""Whether what an operator reads fits together: shape inference says nothing where a network is fed other sizes than it
was exported for, such as a vision transformer another resolution."""

from __future__ import annotations

from nas_core.graph.graph import GraphError
from nas_core.graph.onnx.network import Shape
from nas_core.graph.onnx.site import Site

_BROADCAST = {"Add", "Sub", "Mul", "Div", "Pow", "Where", "Sum", "Mean", "Max", "Min"}


def check_fit(site: Site, name: str) -> None:
    """Elementwise operators, matrix products, linear layers and convolutions; others are taken to fit.

    Args:
        name: of the network, for the message.

    Raises:
        GraphError: no runtime could compute the operator.
    """
    known = [shape for shape in site.ins if shape]
    if not _fits(site, known):
        sizes = " and ".join(str(shape) for shape in known)
        raise GraphError(
            f"{name}: {site.kind} reads tensors of shapes {sizes}, which do not fit; give the input sizes that the "
            "model was exported for, or export it for these"
        )


def _fits(site: Site, known: list[Shape]) -> bool:
    if site.kind in _BROADCAST:
        old = {"axis", "broadcast"} & site.settings.keys()  # before opset 7 the second tensor could stand at any axis
        return bool(old) or _broadcast(known)
    if len(known) < 2:
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
