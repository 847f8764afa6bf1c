"""What is run while the clock runs: the protocol of workloads, and the workload of a network that runs in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from nas_core.random_streams import own_streams

__all__ = ["Convertible", "OnePassWorkload", "Workload", "same_draws"]


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


@contextmanager
def same_draws() -> Iterator[None]:
    """Draw the same random weights and inputs each time, and leave the caller's random numbers untouched."""
    with own_streams(0):
        yield
