"""Weights of validated subnets, mixed once for all batches of a validation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from nas_core.layers.weights import named_tensors
from nas_core.space import Architecture
from nas_core.supernet.active import SubnetHolder

__all__ = ["KeptSubnets"]


class KeptSubnets:
    """What ``select`` gave for the architectures of a validation, until :meth:`forget`: right while no weight changes.

    Mixed experts take memory, unlike slices. They are kept while they take no more of it than the supernet's own
    weights; what comes later, as the last of two hundred ranked subnets, is mixed anew for each batch.
    """

    def __init__(self) -> None:
        self._model: SubnetHolder[Any] | None = None
        self._kept: dict[Architecture, Any] = {}
        self._bytes = 0

    def forget(self) -> None:
        """Free them; called before weights change, and before a validation begins."""
        self._model, self._kept, self._bytes = None, {}, 0

    @contextmanager
    def using(self, model: SubnetHolder[Any], architecture: Architecture) -> Iterator[None]:
        """Run the model, which is in evaluation mode, with this architecture inside the block."""
        if self._model is not model:
            self.forget()
            self._model = model
        subnet = self._kept.get(architecture)
        if subnet is None:
            with torch.no_grad():
                subnet = model.select(model.space.validate(architecture))
            own = _bytes_beside(model, subnet)
            if self._bytes + own <= sum(parameter.nbytes for parameter in model.parameters()):
                self._kept[architecture] = subnet
                self._bytes += own
        with model.running(architecture, subnet):
            yield


def _bytes_beside(model: SubnetHolder[Any], subnet: Any) -> int:
    """Memory of the weights that are no part of the model's own."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    storages = [tensor.untyped_storage() for _, tensor in named_tensors(subnet)]
    return sum({each.data_ptr(): each.nbytes() for each in storages if each.data_ptr() not in own}.values())
