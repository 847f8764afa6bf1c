"""The processes that train one network together under ``torchrun``, or the one there is.

Each has a device and its own part of the images; weights, architectures and decisions are the same in all. Gradients
are averaged once per update, not by torch's ``DistributedDataParallel``: that one has to find out in each pass which
parameters a subnet lacks, and waits for the device to be told by the others. Here all workers train the same subnets,
so that the same parameters have a gradient everywhere; the others keep none, and Adam leaves them alone, as it does in
one process.
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

_NEEDED = ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun tells its workers beside ``WORLD_SIZE``."""
_BUCKET = 2**23
"""Numbers that are exchanged at once; larger tensors go alone."""


class LostWorkerError(NasExtError):
    """Another worker ended, or cannot be reached."""


class ToldElsewhereError(NasExtError):
    """Something is wrong, and another worker says what."""


@dataclass(frozen=True)
class Workers:
    """This process and how many there are; with one worker nothing is exchanged.

    Every method has to be called by all workers.
    """

    device: torch.device
    """This worker's."""
    rank: int = 0
    """Its number, from 0."""
    count: int = 1
    """How many there are."""

    @property
    def first(self) -> bool:
        """Whether this worker is the one that writes files and talks."""
        return self.rank == 0

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace each gradient by its mean over the workers; parameters without one are left without."""
        if self.count == 1:
            return
        for bucket in _buckets([one for one in parameters if one.grad is not None]):
            flat = self._sum(torch.cat([one.grad.reshape(-1) for one in bucket if one.grad is not None]))
            flat /= self.count
            for one, part in zip(bucket, flat.split([one.numel() for one in bucket]), strict=True):
                one.grad = part.view_as(one)

    def mean(self, values: Tensor) -> Tensor:
        """The mean of the workers' tensors."""
        return values if self.count == 1 else self._sum(values.clone()) / self.count

    def sums(self, values: Sequence[float]) -> list[float]:
        """The sums of the workers' numbers, the same to the last bit in all."""
        if self.count == 1:
            return list(values)
        total = self._sum(torch.tensor(values, dtype=torch.float64, device=self.device))
        return self._from_first(total).tolist()

    def share(self, model: nn.Module) -> None:
        """Give all workers the first one's parameters and buffers."""
        if self.count > 1:
            for tensor in (*model.parameters(), *model.buffers()):
                tensor.detach().copy_(self._from_first(tensor.detach().contiguous()))

    def check_same(self, number: int, what: str, advice: str) -> None:
        """Raise unless all workers have this number.

        Raises:
            ConfigError: they do not.
        """
        every = self._gathered(number)
        if len(set(every)) > 1:
            known = " and ".join(map(str, sorted(set(every))))
            raise self.agreed(ConfigError(f"{what} is {known}, on one worker or another; {advice}"))

    @contextmanager
    def together(self) -> Iterator[None]:
        """If a block, in which nothing is exchanged, fails on some workers, then raise on all: the error on the first
        of them, :class:`ToldElsewhereError` on the others."""
        failure: NasExtError | None = None
        try:
            yield
        except NasExtError as error:
            failure = error
        flags = self._gathered(int(failure is not None))
        if any(flags):
            mine = failure if flags.index(1) == self.rank else None
            raise mine or ToldElsewhereError("another worker failed")

    def agreed(self, error: NasExtError) -> NasExtError:
        """An error that all workers find at once: itself on the first, :class:`ToldElsewhereError` on the others."""
        return error if self.first else ToldElsewhereError(str(error))

    def tells(self, error: NasExtError) -> bool:
        """Whether this worker is the one to say it."""
        return self.first if isinstance(error, LostWorkerError) else not isinstance(error, ToldElsewhereError)

    def _gathered(self, number: int) -> list[int]:
        if self.count == 1:
            return [number]
        every = torch.zeros(self.count, dtype=torch.long, device=self.device)
        every[self.rank] = number
        return [int(one) for one in self._sum(every).tolist()]

    def _sum(self, tensor: Tensor) -> Tensor:
        with _reached():
            dist.all_reduce(tensor)
        return tensor

    def _from_first(self, tensor: Tensor) -> Tensor:
        with _reached():
            dist.broadcast(tensor, 0)
        return tensor


def join(device: str) -> Workers:
    """Become one of the workers that torchrun has started: NCCL between CUDA devices, gloo between CPUs. Without
    torchrun, or with one worker, there is this process alone.

    Args:
        device: ``cpu`` or ``cuda``; several workers take ``cuda:0``, ``cuda:1``, .. by their number on their machine.

    Raises:
        ConfigError: the device cannot be used, or has an index where there are several workers.
    """
    count = _number("WORLD_SIZE", os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        return Workers(usable_device(device))
    if lacking := [name for name in _NEEDED if name not in os.environ]:
        raise ConfigError(
            f"WORLD_SIZE is {count} and {', '.join(lacking)} not set; start with torchrun, or unset WORLD_SIZE"
        )
    kind, colon, _ = device.partition(":")
    if colon:
        raise ConfigError(
            f"--device {device} with {count} workers; give {kind}, each takes its own (CUDA_VISIBLE_DEVICES says which)"
        )
    own = usable_device("cpu" if kind == "cpu" else f"{kind}:{os.environ['LOCAL_RANK']}")
    if own.type == "cuda":
        torch.cuda.set_device(own)  # NCCL's own buffers and barriers go there
    if not dist.is_initialized():
        with _reached():
            dist.init_process_group("nccl" if own.type == "cuda" else "gloo")
    return Workers(own, dist.get_rank(), dist.get_world_size())


def _number(name: str, value: str) -> int:
    if not value.isdigit():
        raise ConfigError(f"{name} is {value!r} in the environment; expected a number, as torchrun sets it")
    return int(value)


def leave() -> None:
    """End what :func:`join` has begun; all workers have to call it."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


@contextmanager
def _reached() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0][:160] if str(error).strip() else type(error).__name__
        raise LostWorkerError(f"a worker ended or cannot be reached ({reason}); its own message says why") from None


def _buckets(parameters: Sequence[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    bucket: list[nn.Parameter] = []
    size = 0
    for one in parameters:
        if bucket and size + one.numel() > _BUCKET:
            yield bucket
            bucket, size = [], 0
        bucket.append(one)
        size += one.numel()
    if bucket:
        yield bucket
