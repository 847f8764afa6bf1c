"""Distributed training with ``torchrun``, or with a single process.

All workers train the same subnets on different images, and average their gradients once per update.
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
    """Error raised when another worker has ended or cannot be reached."""


class OtherWorkerError(NasExtError):
    """Error raised on this worker because another worker failed."""


@dataclass(frozen=True)
class Workers:
    """Device and rank of this process, and communication with other workers.

    If one worker calls a method, all workers must call it.
    """

    device: torch.device
    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """True for the worker with rank 0, which writes files and messages."""
        return self.rank == 0

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Average gradients over the workers; parameters without gradient are skipped."""
        if self.count == 1:
            return
        trained = [parameter for parameter in parameters if parameter.grad is not None]
        flat = self._sum(torch.cat([parameter.grad.flatten() for parameter in trained])).div_(self.count)
        chunks = flat.split([parameter.numel() for parameter in trained])
        for parameter, chunk in zip(trained, chunks, strict=True):
            parameter.grad = chunk.view_as(parameter)

    def mean(self, values: Tensor) -> Tensor:
        return self._sum(values.clone()) / self.count

    def sums(self, values: Sequence[float]) -> list[float]:
        if self.count == 1:
            return list(values)
        return self._sum(torch.tensor(values, dtype=torch.float64, device=self.device)).tolist()

    def share(self, model: nn.Module) -> None:
        """Copy the parameters and buffers of the first worker to all workers."""
        if self.count > 1:
            for tensor in model.state_dict().values():
                received = tensor.contiguous()
                with _worker_errors():
                    dist.broadcast(received, 0)
                tensor.copy_(received)

    def check_same(self, number: int, name: str, advice: str) -> None:
        """Raise a ConfigError if ``number`` differs between workers; its message has ``name`` and ``advice``."""
        numbers = sorted(set(self._gather(number)))
        if len(numbers) > 1:
            values = " and ".join(map(str, numbers))
            raise self.shared_error(ConfigError(f"{name} differs between workers: {values}; {advice}"))

    @contextmanager
    def fail_together(self) -> Iterator[None]:
        """Make all workers raise an error if the ``with`` block fails on one of them.

        The block must not communicate with other workers.
        """
        failure: NasExtError | None = None
        try:
            yield
        except NasExtError as error:
            failure = error
        flags = self._gather(int(failure is not None))
        if any(flags):
            own_error = failure if flags.index(1) == self.rank else None
            raise own_error or OtherWorkerError("another worker failed")

    def shared_error(self, error: NasExtError) -> NasExtError:
        """Return ``error`` on the first worker, and :class:`OtherWorkerError` on others."""
        return error if self.first else OtherWorkerError(str(error))

    def reports(self, error: NasExtError) -> bool:
        return self.first if isinstance(error, LostWorkerError) else not isinstance(error, OtherWorkerError)

    def _gather(self, number: int) -> list[int]:
        numbers = torch.zeros(self.count, dtype=torch.long, device=self.device)
        numbers[self.rank] = number
        return self._sum(numbers).tolist()

    def _sum(self, tensor: Tensor) -> Tensor:
        if self.count > 1:
            with _worker_errors():
                dist.all_reduce(tensor)
        return tensor


def join(device: str) -> Workers:
    """Join the process group of torchrun; without torchrun, return a single worker.

    Args:
        device: ``cpu`` or ``cuda``, without an index if there are several workers.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        return Workers(usable_device(device))
    kind, _, index = device.partition(":")
    if index:
        raise ConfigError(
            f"--device is {device}, but there are {count} workers; give --device {kind}, and each worker uses one of"
            " CUDA_VISIBLE_DEVICES"
        )
    worker_device = usable_device("cpu" if kind == "cpu" else f"{kind}:{os.environ['LOCAL_RANK']}")
    if worker_device.type == "cuda":
        torch.cuda.set_device(worker_device)  # NCCL's own buffers and barriers go there
    if not dist.is_initialized():
        with _worker_errors():
            dist.init_process_group("nccl" if worker_device.type == "cuda" else "gloo")
    return Workers(worker_device, dist.get_rank(), dist.get_world_size())


def leave() -> None:
    """Leave the process group of torchrun; all workers must call it."""
    if dist.is_initialized():
        dist.destroy_process_group()


@contextmanager
def _worker_errors() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        reason = (str(error) or type(error).__name__).splitlines()[0][:160]
        raise LostWorkerError(
            f"another worker ended or cannot be reached ({reason}); see the error message of that worker"
        ) from None
