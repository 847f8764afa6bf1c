"""Recording of inputs and outputs of linear layers in a forward pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode


class Taps(TorchFunctionMode):
    """Recorder of the inputs and outputs of linear layers inside a ``with`` block.

    A layer is identified by its weight: a parameter, or a tensor of a subnet. Recorded tensors are
    not detached. Layers inside other PyTorch functions, such as ``nn.MultiheadAttention``, are not recorded.

    Args:
        weights: weights ``(out, in)`` by name.
    """

    def __init__(self, weights: Mapping[str, Tensor], inputs: bool = True, outputs: bool = False) -> None:
        super().__init__()
        self.inputs: dict[str, list[Tensor]] = {}
        """Inputs ``(..., in)`` of each call, by name of the weight."""
        self.outputs: dict[str, list[Tensor]] = {}
        """Outputs ``(..., out)`` of each call, by name of the weight."""
        self._records = inputs, outputs
        self._weights = dict(weights)  # referenced, so that no other tensor gets the same address
        self._names: dict[object, list[str]] = {}
        for name, weight in self._weights.items():
            self._names.setdefault(_weight_key(weight), []).append(name)
        self.clear()

    def clear(self) -> None:
        inputs, outputs = self._records
        self.inputs = {name: [] for name in self._weights} if inputs else {}
        self.outputs = {name: [] for name in self._weights} if outputs else {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is not F.linear or not (
            names := self._names.get(_weight_key(args[1] if len(args) > 1 else kwargs["weight"]))
        ):
            return func(*args, **kwargs)
        x = args[0] if args else kwargs["input"]
        if self.inputs and torch.is_grad_enabled() and not x.requires_grad:
            x.requires_grad_()
        result = func(*args, **kwargs)
        for name in names:
            if self.inputs:
                self.inputs[name].append(x)
            if self.outputs:
                self.outputs[name].append(result)
        return result


def _weight_key(weight: Tensor) -> object:
    address = weight.data_ptr() if weight.device.type != "meta" else 0
    return (address, weight.device, tuple(weight.shape), weight.stride()) if address else id(weight)
