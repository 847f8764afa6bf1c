"""What flows through a network's linear layers, read without touching its layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

__all__ = ["Taps"]


class Taps(TorchFunctionMode):
    """Records inputs and outputs of the linear layers that use these very weights, inside a ``with`` block.

    Layers of this project compute with weights that ``select`` hands them; a weight is known by being the same object,
    so name those of the subnet that is run (see :func:`nas_core.layers.weights.named_tensors`). What is recorded is
    part of the graph: gradients can be taken of it and by it. Input without a graph asks for a gradient from then on.

    Args:
        weights: the weights (out, in) by any name.
        inputs, outputs: which of both to keep.
    """

    def __init__(self, weights: Mapping[str, Tensor], inputs: bool = False, outputs: bool = False) -> None:
        super().__init__()
        self._names = {id(weight): name for name, weight in weights.items()}
        self._keep = inputs, outputs
        self.inputs: dict[str, list[Tensor]] = {}
        """For each weight that was used, its inputs (.., in), one for each use."""
        self.outputs: dict[str, list[Tensor]] = {}
        """The same of outputs (.., out)."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is not torch.nn.functional.linear or (name := self._names.get(id(_weight(args, kwargs)))) is None:
            return func(*args, **kwargs)
        x = args[0] if args else kwargs["input"]
        if self._keep[0]:
            if torch.is_grad_enabled() and not x.requires_grad:
                x.requires_grad_()
            self.inputs.setdefault(name, []).append(x)
        out = func(*args, **kwargs)
        if self._keep[1]:
            self.outputs.setdefault(name, []).append(out)
        return out


def _weight(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return args[1] if len(args) > 1 else kwargs.get("weight")
