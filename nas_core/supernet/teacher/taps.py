"""What linear layers read and give, recorded while a network runs and without touching it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from nas_core.layers.weights import named_tensors


def weights_of(subnet: Any, wanted: Callable[[str], bool]) -> dict[str, Tensor]:
    """Weights by name of what a network's ``select`` gave, those of a name that is ``wanted``: names are those of the
    static network, ``encoder_layers.0.self_attn.out_proj.weight``."""
    return {name: tensor for name, tensor in named_tensors(subnet) if wanted(name)}


class Taps(TorchFunctionMode):
    """Records the inputs and outputs of linear layers inside a ``with`` block.

    A layer is known by its weight, the very tensor that the network multiplies with: a parameter, or what ``select``
    gave (:func:`weights_of`), if the network runs with the same tuple. The network may run several times; under
    autocast inputs are what the layer was given and outputs what it gave. Nothing is detached: gradients can be taken
    of what was recorded and by it, and inputs without a graph ask for a gradient from then on.

    A layer that torch calls inside another function, as those of ``nn.MultiheadAttention``, is not seen.

    Args:
        weights: tensors (out, in) by the name under which the layer is recorded; one tensor may have several names.
        inputs: record what the layers read.
        outputs: record what they give.
    """

    def __init__(self, weights: Mapping[str, Tensor], inputs: bool = True, outputs: bool = False) -> None:
        super().__init__()
        self.inputs: dict[str, list[Tensor]] = {}
        """(.., in) of each call of a layer, by its name."""
        self.outputs: dict[str, list[Tensor]] = {}
        """(.., out) of each call of a layer, by its name."""
        self._records = inputs, outputs
        self._weights = dict(weights)  # kept, so that no other tensor takes the place of one in memory
        self._names: dict[object, list[str]] = {}
        for name, weight in self._weights.items():
            self._names.setdefault(_place(weight), []).append(name)
        self.clear()

    def clear(self) -> None:
        """Forget what was recorded so far."""
        inputs, outputs = self._records
        self.inputs = {name: [] for name in self._weights} if inputs else {}
        self.outputs = {name: [] for name in self._weights} if outputs else {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call what torch was to call, and record it if it is one of these layers."""
        kwargs = kwargs or {}
        if func is not F.linear or not (names := self._names.get(_place(_given(args, kwargs, 1, "weight")))):
            return func(*args, **kwargs)
        x = _given(args, kwargs, 0, "input")
        if self.inputs and torch.is_grad_enabled() and not x.requires_grad:
            x.requires_grad_()
        result = func(*args, **kwargs)
        for name in names:
            if self.inputs:
                self.inputs[name].append(x)
            if self.outputs:
                self.outputs[name].append(result)
        return result


def _given(args: tuple[Any, ...], kwargs: dict[str, Any], place: int, name: str) -> Any:
    return args[place] if len(args) > place else kwargs[name]


def _place(weight: Tensor) -> object:
    """Where the numbers of a tensor lie, the same for two views of the same part of a parameter."""
    address = weight.data_ptr() if weight.device.type != "meta" else 0
    return (address, weight.device, tuple(weight.shape), weight.stride()) if address else id(weight)
