"""Processes that train one network together under ``torchrun``, or a single process.

Each worker has a device and a part of the images. All train the same subnets, so that the same parameters have
gradients, averaged once per update. ``DistributedDataParallel`` would search for unused parameters in each pass.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from nas_core.device import usable_device
from nas_core.errors import ConfigError, NasExtError


class LostWorkerError(NasExtError):
    """Another worker ended or is not reachable."""


class OtherWorkerError(NasExtError):
    """A failure that another worker reports."""


@dataclass(frozen=True)
class Workers:
    """This process among all workers; a single worker exchanges nothing.

    All workers must call every method.
    """

    device: torch.device
    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """True for the worker that writes files and messages."""
        return self.rank == 0

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Average each gradient over the workers in one exchange; parameters without gradient are skipped."""
        if self.count == 1:
            return
        trained = [parameter for parameter in parameters if parameter.grad is not None]
        flat = self._sum(torch.cat([parameter.grad.flatten() for parameter in trained])).div_(self.count)
        parts = flat.split([parameter.numel() for parameter in trained])
        for parameter, part in zip(trained, parts, strict=True):
            parameter.grad = part.view_as(parameter)

    def mean(self, values: Tensor) -> Tensor:
        """Average tensors over the workers."""
        return self._sum(values.clone()) / self.count

    def sums(self, values: Sequence[float]) -> list[float]:
        """Sum numbers over the workers."""
        if self.count == 1:
            return list(values)
        return self._sum(torch.tensor(values, dtype=torch.float64, device=self.device)).tolist()

    def share(self, model: nn.Module) -> None:
        """Copy the first worker's parameters and buffers to all."""
        if self.count > 1:
            for tensor in model.state_dict().values():
                received = tensor.contiguous()
                with _reached():
                    dist.broadcast(received, 0)
                tensor.copy_(received)

    def check_same(self, number: int, what: str, advice: str) -> None:
        """Raise a ConfigError unless all workers have this number."""
        numbers = sorted(set(self._gathered(number)))
        if len(numbers) > 1:
            values = " and ".join(map(str, numbers))
            raise self.agreed(ConfigError(f"{what} differs between workers: {values}; {advice}"))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Raise on all workers if the block, which exchanges nothing, fails on some.

        The first failing worker raises its error, the others :class:`OtherWorkerError`.
        """
        failure: NasExtError | None = None
        try:
            yield
        except NasExtError as error:
            failure = error
        flags = self._gathered(int(failure is not None))
        if any(flags):
            mine = failure if flags.index(1) == self.rank else None
            raise mine or OtherWorkerError("another worker failed")

    def agreed(self, error: NasExtError) -> NasExtError:
        """Return an error of all workers on the first worker, :class:`OtherWorkerError` on the others."""
        return error if self.first else OtherWorkerError(str(error))

    def reports(self, error: NasExtError) -> bool:
        return self.first if isinstance(error, LostWorkerError) else not isinstance(error, OtherWorkerError)

    def _gathered(self, number: int) -> list[int]:
        numbers = torch.zeros(self.count, dtype=torch.long, device=self.device)
        numbers[self.rank] = number
        return self._sum(numbers).tolist()

    def _sum(self, tensor: Tensor) -> Tensor:
        if self.count > 1:
            with _reached():
                dist.all_reduce(tensor)
        return tensor


def join(device: str) -> Workers:
    """Join torchrun's workers: NCCL between CUDA devices, gloo between CPUs; without torchrun, one worker.

    Args:
        device: ``cpu`` or ``cuda``; several workers use ``cuda:0``, ``cuda:1``, .. by their local rank.

    Raises:
        ConfigError: the device cannot be used, or has an index with several workers.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        return Workers(usable_device(device))
    kind, _, index = device.partition(":")
    if index:
        raise ConfigError(
            f"--device {device} with {count} workers; give {kind}, each worker takes one of CUDA_VISIBLE_DEVICES"
        )
    worker_device = usable_device("cpu" if kind == "cpu" else f"{kind}:{os.environ['LOCAL_RANK']}")
    if worker_device.type == "cuda":
        torch.cuda.set_device(worker_device)  # NCCL's own buffers and barriers go there
    if not dist.is_initialized():
        with _reached():
            dist.init_process_group("nccl" if worker_device.type == "cuda" else "gloo")
    return Workers(worker_device, dist.get_rank(), dist.get_world_size())


def leave() -> None:
    """Leave the workers; all must call it."""
    if dist.is_initialized():
        dist.destroy_process_group()


@contextmanager
def _reached() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        reason = (str(error) or type(error).__name__).splitlines()[0][:160]
        raise LostWorkerError(
            f"a worker ended or cannot be reached ({reason}); see the message of that worker"
        ) from None
