"""What functions a network calls while it runs, whether its modules call them or it calls them itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

NORMS: frozenset[Any] = frozenset(
    {F.batch_norm, F.layer_norm, F.group_norm, F.instance_norm, F.rms_norm, torch.layer_norm, torch.batch_norm}
)
"""Functions that scale their input by its own statistics."""

ACTIVATIONS: frozenset[Any] = frozenset(
    {
        F.relu, F.relu6, F.leaky_relu, F.elu, F.gelu, F.silu, F.hardswish, F.mish, F.selu, F.celu, F.prelu, F.rrelu,
        torch.relu, torch.relu_, Tensor.relu, Tensor.relu_,
    }
)  # fmt: skip
"""Functions of a single number that are flat, or nearly so, on one side of 0."""

Called = Callable[..., Any]


class Watching(TorchFunctionMode):
    """Calls ``seen(function, arguments, named arguments)`` in the place of each of these functions; it gives what the
    function would give."""

    def __init__(
        self, functions: frozenset[Any], seen: Callable[[Called, Sequence[Any], Mapping[str, Any]], Any]
    ) -> None:
        super().__init__()
        self._functions, self._seen = functions, seen

    def __torch_function__(
        self, func: Called, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        return self._seen(func, args, named) if func in self._functions else func(*args, **named)


def argument(args: Sequence[Any], named: Mapping[str, Any], name: str = "input") -> Tensor:
    """The first argument of a call, or the one of that name."""
    found: Tensor = args[0] if args else named[name]
    return found
