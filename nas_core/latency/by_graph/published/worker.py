"""The worker that makes graphs of published networks: one after the other, within limits of time and memory."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nas_core.errors import NasExtError
from nas_core.files import write_atomic
from nas_core.graph import GraphError
from nas_core.graph.onnx import OnnxNetwork, read_onnx
from nas_core.latency.by_graph.published.weightless import exported_without_weights, of_batch, without_storage
from nas_core.optional import require

ABSENT_FAMILY = "absent"
"""Family of networks that the source does not have."""
_SAME_PARAMS, _ROUNDED_M = 0.01, 0.011
"""By how much parameters may differ from the published ones, relative and in millions: those are rounded."""
_WAYS = ((True, True), (True, False), (False, True), (False, False))
"""For any batch or for one, and whether constants are folded: not where shapes follow from those of weights, as where
these are standardised in each pass."""
_TILL_KILLED = 3
"""After so many times its limit, a network that cannot be interrupted takes its process down."""
_NO_MEMORY = ("can't allocate memory", "not enough memory", "bad_alloc", "Cannot allocate memory")


class NamedNetwork(NamedTuple):
    """A network that a source has by that name."""

    family: str
    """Networks of one family have their code in one module."""
    make: Callable[[float | None], tuple[nn.Module, tuple[Tensor, ...]]]
    """Builds it in evaluation mode, with the inputs of a batch of one; of several forms, that which has nearly so many
    millions of parameters."""


def exporting(
    build: Callable[[str, int], NamedNetwork | None],
    folder: str,
    most_seconds: float,
    most_memory_gb: float | None,
    max_nodes: int,
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """What makes the graph of one item: ``name, model, img_size, batch_size`` and perhaps ``params_m``
    and ``graph``, the path of its ONNX file for another batch.

    Its results have ``family``, and ``error``, or the fields of a row of :class:`NetworkSet` about costs; the ONNX file
    is then in the folder.

    Args:
        build: name of a model and image size -> the network, None where there is none of that name.
        folder: where the ONNX files go.
        most_seconds: for one network.
        most_memory_gb: of this whole process from now on; None: no limit.
        max_nodes: of a graph.
    """
    if most_memory_gb is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        asked = int(most_memory_gb * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (asked if hard == resource.RLIM_INFINITY else min(asked, hard), hard))

    def export(item: Mapping[str, Any]) -> dict[str, Any]:
        found = build(item["model"], item["img_size"])
        if found is None:
            return {"family": ABSENT_FAMILY, "error": f"there is no model {item['model']!r}"}
        try:
            with _limited(most_seconds):
                return {"family": found.family, **_costs(found, item, Path(folder), max_nodes)}
        except Exception as error:  # what a network and the exporter raise is not ours
            return {"family": found.family, "error": _reason(error, most_memory_gb)}

    return export


def _costs(found: NamedNetwork, item: Mapping[str, Any], folder: Path, max_nodes: int) -> dict[str, Any]:
    begin = time.perf_counter()
    content, read = _of_graph(item) or _of_network(found, item)
    if len(read.graph) > max_nodes:
        raise NasExtError(f"its graph has {len(read.graph)} nodes, more than max_nodes = {max_nodes}")
    write_atomic(folder / f"{item['name']}.onnx", content)
    return {
        "seconds": time.perf_counter() - begin,
        "nodes": len(read.graph),
        "flops_g": read.flops_g,
        "params_m": read.params_m,
        "access_m": read.access_m,
        "unknown": dict(read.unknown),
    }


def _of_graph(item: Mapping[str, Any]) -> tuple[bytes, OnnxNetwork] | None:
    """The ONNX file that was made for another batch, for this one; None where there is none, or it has but one."""
    if not item.get("graph"):
        return None
    try:
        content = of_batch(Path(item["graph"]).read_bytes(), item["batch_size"])
        return None if content is None else (content, read_onnx(content, warn=False))
    except (OSError, GraphError, require("google.protobuf.message", "reading ONNX files", "onnx").DecodeError):
        return None  # it was removed or damaged: the network itself is there


def _of_network(found: NamedNetwork, item: Mapping[str, Any]) -> tuple[bytes, OnnxNetwork]:
    with without_storage():
        network, inputs = found.make(item.get("params_m"))
    _check_parameters(network, item)
    return _read(network, inputs, item["batch_size"])


def _read(network: nn.Module, inputs: tuple[Tensor, ...], batch: int) -> tuple[bytes, OnnxNetwork]:
    """The ONNX file, and the graph in it."""
    failed: Exception | None = None
    for any_batch, folding in _WAYS if batch == 1 else _WAYS[:2]:
        try:
            with _quiet():
                content = exported_without_weights(network, inputs, batch, folding, any_batch)
                return content, read_onnx(content, warn=False)
        except (GraphError, torch.onnx.errors.SymbolicValueError) as error:  # another way may be one
            failed = error
    assert failed is not None
    raise failed


def _check_parameters(network: nn.Module, item: Mapping[str, Any]) -> None:
    here = sum(param.numel() for param in network.parameters()) / 1e6
    published = item.get("params_m")
    if published is not None and abs(here - published) > max(_SAME_PARAMS * published, _ROUNDED_M):
        raise NasExtError(
            f"it has {here:.2f} M parameters here, {published:g} M where it was measured: another network of that name"
        )


def _reason(error: Exception, most_memory_gb: float | None) -> str:
    """One line."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError) or any(words in text for words in _NO_MEMORY):
        limit = "there is" if most_memory_gb is None else f"{most_memory_gb:g} GB"
        return f"it takes more memory than {limit}"
    return text[:300] if isinstance(error, NasExtError) else f"{type(error).__name__}: {text[:300]}"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter from printing the graph of what it cannot export, thousands of lines."""
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Interrupt the block after so long; where nothing can be interrupted, end the process some time later."""

    def stop(number: int, frame: object) -> None:
        raise NasExtError(f"it takes longer than {seconds:g} s")

    end = threading.Timer(_TILL_KILLED * seconds, os._exit, (1,))
    end.daemon = True
    before = signal.signal(signal.SIGALRM, stop)
    end.start()
    earlier = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *earlier)
        end.cancel()
