"""What is run while the clock runs: the protocol of workloads, and the workload of a network that runs in one pass."""

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
"""Smaller token numbers are fairseq's special symbols; number 1 is padding, which attention would skip."""


class Workload(Protocol):
    """Something to time: named parts that are run one after the other, and the modules they use."""

    @property
    def parts(self) -> Mapping[str, Callable[[], object]]:
        """Name -> one pass of that part; later parts may use what earlier ones left."""

    @property
    def modules(self) -> Sequence[nn.Module]:
        """Modules that must be in evaluation mode; may be empty."""


@runtime_checkable
class Convertible(Protocol):
    """A workload that can be timed in half precision."""

    def convert(self, dtype: torch.dtype) -> None:
        """Make weights and real inputs numbers of this type, as those of a network that is deployed in it."""
        ...


class OnePassWorkload:
    """A network on inputs that never change, as the one part ``network``."""

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
        """One pass; gives what the network gives."""
        return self._network(*self._inputs)


class SubnetWorkload:
    """A network with ``select``, and the weights of one architecture, which are taken once, as an extracted network has
    them. What a kind of network runs with them are its ``parts``."""

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


def check_words(config: Any, *names: str) -> None:
    """Check that those vocabularies of a workload's settings have more than special symbols.

    Raises:
        ConfigError: one has not.
    """
    for name in names:
        if getattr(config, name) <= FIRST_WORD:
            raise ConfigError(f"{name} is {getattr(config, name)}, expected more than {FIRST_WORD} (special symbols)")


def check_least(config: Any, **least: int) -> None:
    """Check that those of a workload's settings are not below a number each.

    Raises:
        ConfigError: one is.
    """
    for name, number in least.items():
        if getattr(config, name) < number:
            raise ConfigError(f"{name} is {getattr(config, name)}, expected at least {number}")


@contextmanager
def same_draws() -> Iterator[None]:
    """Draw the same random weights and inputs each time, and leave the caller's random numbers untouched."""
    with own_streams(0):
        yield
