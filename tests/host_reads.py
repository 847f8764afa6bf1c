"""Detection of operations that make the host wait for the device, on CUDA and on the CPU.

On CUDA torch reports them. On the CPU, operations that would wait on CUDA are detected. Copies of the host's memory
wait too, unless they are ``non_blocking``. With ``copies`` each operation that names a device counts as one
(``x.to(device)``, ``torch.tensor(.., device=)``), for code in which nothing else names it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC2701

__all__ = ["HostReadError", "host_reads", "no_host_reads"]

_CUDA_MESSAGE = "called a synchronizing CUDA operation"

# The number or the shape of what they give lies in the tensor.
_NAMES = ("_local_scalar_dense", "item", "equal", "is_nonzero", "nonzero", "nonzero_numpy", "argwhere", "masked_select")
_READING = {f"aten.{name}" for name in (*_NAMES, "bincount", "_unique", "_unique2", "unique_dim", "unique_consecutive")}


class HostReadError(AssertionError):
    """The host read from the device where it must not."""


@contextmanager
def no_host_reads(device: torch.device | str, copies: bool = False) -> Iterator[None]:
    """Raise inside the block where the host reads a value from the device (or would, if the CPU were one): in
    forward, backward, anywhere."""
    if torch.device(device).type != "cuda":
        with _Copying(_forbid) if copies else nullcontext(), _Watching(_forbid):
            yield
        return
    with _sync_debug_mode("error"):
        try:
            yield
        except RuntimeError as error:
            if _CUDA_MESSAGE not in str(error):
                raise
            raise HostReadError(str(error)) from error


@contextmanager
def host_reads(device: torch.device | str, copies: bool = False) -> Iterator[list[str]]:
    """A list that fills inside the block (on CUDA: at its end) with what the host reads from the device."""
    results: list[str] = []
    if torch.device(device).type != "cuda":
        with _Copying(results.append) if copies else nullcontext(), _Watching(results.append):
            yield results
        return
    with warnings.catch_warnings(record=True) as caught, _sync_debug_mode("warn"):
        warnings.simplefilter("always")
        yield results
    results.extend(f"{each.filename}:{each.lineno}" for each in caught if _CUDA_MESSAGE in str(each.message))


@contextmanager
def _sync_debug_mode(mode: str) -> Iterator[None]:
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode(mode)
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


class _Watching(TorchDispatchMode):
    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__()
        self.report = report

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = str(func.overloadpacket)
        if name in _READING or _masks(name, args) or _counts(name, args, kwargs):
            self.report(name)
        return func(*args, **kwargs)


class _Copying(TorchFunctionMode):
    """Finds what names a device to copy numbers of the host to."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__()
        self.report = report

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is Tensor.to:
            named = [kwargs.get("device"), *args[1:]]
            copies = any(isinstance(one, str | torch.device) for one in named) and not kwargs.get("non_blocking")
        else:  # what is a tensor already lies there in the programs that are watched
            makes = func is torch.tensor or (func is torch.as_tensor and not isinstance(args[0], Tensor))
            copies = makes and kwargs.get("device") is not None
        if copies:
            self.report("copy to a device")
        return func(*args, **kwargs)


def _forbid(name: str) -> None:
    raise HostReadError(f"{name}: the host would wait for the device here")


def _masks(name: str, args: Any) -> bool:
    """Indexing by a mask, whose number of True values the host must know; filling by one needs none."""
    if name not in ("aten.index", "aten.index_put", "aten.index_put_"):
        return False
    masked = any(isinstance(at, Tensor) and at.dtype in (torch.bool, torch.uint8) for at in args[1])
    return masked and not (name != "aten.index" and args[2].numel() == 1)


def _counts(name: str, args: Any, kwargs: Any) -> bool:
    """Repeating as often as a tensor says, without the sum of it."""
    if name != "aten.repeat_interleave":
        return False
    return kwargs.get("output_size") is None and any(isinstance(each, Tensor) for each in args)
