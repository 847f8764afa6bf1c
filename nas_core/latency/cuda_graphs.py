"""Recording of a forward pass as CUDA graphs."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch

from nas_core.device import device_index, uncollected
from nas_core.errors import ConfigError

WARM_UP = 3  # passes before the recording, in which libraries choose kernels and allocate memory


def recorded(parts: Mapping[str, Callable[[], object]], device: torch.device | str) -> dict[str, Callable[[], object]]:
    """Record each part of a forward pass as a CUDA graph; return functions that replay them, to be called in order.

    A replay reads the input tensors of the recording and overwrites its output tensors. A part must not read values of
    tensors on the CPU.
    """
    # Outside inference mode: torch keeps the state of random numbers with its first recording, up to 2.12 as a tensor
    # of that mode, which recordings outside it cannot change. Uncollected: a graph that is freed ends a recording.
    with torch.inference_mode(False), torch.no_grad(), uncollected(), torch.cuda.device(device_index(device)):
        # Of this device: torch's own stream for recording is of the device that first recorded.
        current, stream = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                for part in parts.values():
                    part()
            for name, part in parts.items():
                _check(name, part)
        current.wait_stream(stream)
        replays: dict[str, Callable[[], object]] = {}
        pool = None  # of memory, one for all: a part reads what the one before has left
        for name, part in parts.items():
            graph = torch.cuda.CUDAGraph()
            # Around it, as a recording that fails leaves torch on the stream of the recording.
            with _one_line_error(name), torch.cuda.stream(current), torch.cuda.graph(graph, pool=pool, stream=stream):
                result = part()
            pool = graph.pool()
            replays[name] = functools.partial(_replay, graph, result, part)
    return replays


def _check(name: str, part: Callable[[], object]) -> None:
    """Raise a ConfigError if a part synchronises with the CPU."""  # a failed recording prevents all later ones
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that this mode is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        with _one_line_error(name):
            part()
    finally:
        torch.cuda.set_sync_debug_mode(before)


@contextmanager
def _one_line_error(name: str) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ConfigError(
            f"part {name!r} of the forward pass cannot be recorded as a CUDA graph ({reason}); leave out cuda_graphs"
        ) from error


def _replay(graph: torch.cuda.CUDAGraph, result: object, part: Callable[[], object]) -> object:
    # part is an argument to keep its inputs alive
    graph.replay()
    return result
