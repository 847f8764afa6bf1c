"""Computations whose latency is measured."""

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
"""Smallest token index in random inputs. Smaller indices are fairseq's special tokens."""


class Workload(Protocol):
    """A computation whose latency is measured."""

    @property
    def components(self) -> Mapping[str, Callable[[], object]]:
        """Functions of the components of a pass, by name and in order. Later components may use earlier results."""

    @property
    def modules(self) -> Sequence[nn.Module]:
        """Modules that must be in evaluation mode."""


@runtime_checkable
class Convertible(Protocol):
    """A workload that can be measured in 16-bit precision."""

    def convert(self, dtype: torch.dtype) -> None:
        """Convert weights and floating-point inputs to a dtype."""
        ...


class OnePassWorkload:
    """Workload that times one forward pass with constant inputs, as a single component ``network``."""

    def __init__(self, network: nn.Module, inputs: Sequence[Tensor], device: str = "cpu") -> None:
        self._network = network.to(device).eval()
        self._inputs = [tensor.to(device) for tensor in inputs]

    @property
    def modules(self) -> Sequence[nn.Module]:
        return [self._network]

    @property
    def components(self) -> Mapping[str, Callable[[], object]]:
        return {"network": self.run}

    def convert(self, dtype: torch.dtype) -> None:
        self._network.to(dtype)
        self._inputs = [tensor.to(dtype) if tensor.is_floating_point() else tensor for tensor in self._inputs]

    def run(self) -> object:
        return self._network(*self._inputs)


class SubnetWorkload:
    """Base class of latency workloads of one architecture."""

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
    """Latency workload of one architecture with a constant input, in one component ``network``.

    Args:
        run: function from (network, subnet, input) to the output.
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
    def components(self) -> Mapping[str, Callable[[], object]]:
        return {"network": lambda: self._run(self._net, self._subnet, self._inputs)}


def check_minimum(config: Any, **minimums: int) -> None:
    for name, number in minimums.items():
        if getattr(config, name) < number:
            raise ConfigError(f"{name} is {getattr(config, name)}; expected at least {number}")


@contextmanager
def same_draws() -> Iterator[None]:
    """Use the same random numbers in each ``with`` block. The random state of the caller does not change."""
    with own_streams(0):
        yield
