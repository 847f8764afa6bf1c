"""Workloads whose time is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.random_streams import own_streams
from nas_core.space import Architecture

FIRST_WORD = 4
"""Smaller token indices are fairseq's special symbols, whose padding is not attended to."""


class Workload(Protocol):
    """A computation to be timed."""

    @property
    def parts(self) -> Mapping[str, Callable[[], object]]:
        """Functions that run the parts of a pass, by name and in order; later parts may use earlier results."""

    @property
    def modules(self) -> Sequence[nn.Module]:
        """Modules that must be in evaluation mode; may be empty."""


@runtime_checkable
class Convertible(Protocol):
    """A workload that can be timed in 16-bit precision."""

    def convert(self, dtype: torch.dtype) -> None:
        """Convert weights and floating-point inputs to this type."""
        ...


class OnePassWorkload:
    """Workload of a network on constant inputs, with one part, ``network``."""

    def __init__(self, network: nn.Module, inputs: Sequence[Tensor], device: str = "cpu") -> None:
        self._network = network.to(device).eval()
        self._inputs = [tensor.to(device) for tensor in inputs]

    @property
    def modules(self) -> Sequence[nn.Module]:
        return [self._network]

    @property
    def parts(self) -> Mapping[str, Callable[[], object]]:
        return {"network": self.run}

    def convert(self, dtype: torch.dtype) -> None:
        self._network.to(dtype)
        self._inputs = [tensor.to(dtype) if tensor.is_floating_point() else tensor for tensor in self._inputs]

    def run(self) -> object:
        return self._network(*self._inputs)


class SubnetWorkload:
    """Workload of a network with ``select``; weights are selected once. Subclasses add ``parts``."""

    def __init__(self, net: nn.Module, architecture: Architecture, device: str) -> None:
        self._net: Any = net.to(device).eval()
        self._architecture = architecture
        self._select()

    def _select(self) -> None:
        with torch.inference_mode():
            self._subnet = self._net.select(self._architecture)

    @property
    def modules(self) -> Sequence[nn.Module]:
        return [self._net]

    def convert(self, dtype: torch.dtype) -> None:
        self._net.to(dtype)
        self._select()


class OnePassSubnetWorkload(SubnetWorkload):
    """Workload of a subnet on a constant input, with one part, ``network``.

    Args:
        run: computes the output of (network, subnet, input).
    """

    def __init__(
        self, net: nn.Module, architecture: Architecture, inputs: Tensor, device: str, run: Callable[..., Tensor]
    ) -> None:
        self._inputs, self._run = inputs.to(device), run
        super().__init__(net, architecture, device)

    def convert(self, dtype: torch.dtype) -> None:
        super().convert(dtype)
        self._inputs = self._inputs.to(dtype) if self._inputs.is_floating_point() else self._inputs

    @property
    def parts(self) -> Mapping[str, Callable[[], object]]:
        return {"network": lambda: self._run(self._net, self._subnet, self._inputs)}


def check_least(config: Any, **least: int) -> None:
    for name, number in least.items():
        if getattr(config, name) < number:
            raise ConfigError(f"{name} is {getattr(config, name)}, expected at least {number}")


@contextmanager
def same_draws() -> Iterator[None]:
    """Draw the same random weights and inputs in each block; the caller's random state is unchanged."""
    with own_streams(0):
        yield
