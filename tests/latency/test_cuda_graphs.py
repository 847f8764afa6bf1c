"""Recording without a device: in which order CUDA is asked for what, and what is said where it refuses."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from nas_core.errors import ConfigError
from nas_core.latency import cuda_graphs
from nas_core.latency.cuda_graphs import WARM_UP, recorded


class Stream:
    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self._log = name, log

    def wait_stream(self, other: Stream) -> None:
        self._log.append(f"{self.name} waits for {other.name}")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """CUDA as far as recording needs it; what it was asked for."""
    told: list[str] = []

    class Graph:
        def __init__(self) -> None:
            self.number = sum(line.startswith("record") for line in told)

        def pool(self) -> str:
            return "pool of 0"

        def replay(self) -> None:
            told.append(f"replay {self.number}")

    @contextmanager
    def within(what: str) -> Iterator[None]:
        told.append(what)
        yield
        told.append(f"end of {what}")

    def record(graph: Graph, pool: object, stream: Stream) -> Any:
        return within(f"record {graph.number} on {stream.name} with {pool}")

    cuda = cuda_graphs.torch.cuda
    monkeypatch.setattr(cuda, "device", lambda index: within(f"device {index}"))
    monkeypatch.setattr(cuda, "current_stream", lambda: Stream("current", told))
    monkeypatch.setattr(cuda, "Stream", lambda: Stream("own", told))
    monkeypatch.setattr(cuda, "stream", lambda stream: within(f"stream {stream.name}"))
    monkeypatch.setattr(cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(cuda, "graph", record)
    monkeypatch.setattr(cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(cuda, "set_sync_debug_mode", lambda mode: told.append(f"waiting: {mode}"))
    return told


def test_parts_are_warmed_up_recorded_on_one_stream_in_one_pool_and_replayed(log: list[str]) -> None:
    parts = {
        "encoder": lambda: log.append("encode") or "memory",  # type: ignore[func-returns-value]
        "decoder": lambda: log.append("decode") or "logits",  # type: ignore[func-returns-value]
    }
    replays = recorded(parts, "cuda:1")
    assert log == [
        "device 1",
        "own waits for current",
        "stream own",
        *["encode", "decode"] * WARM_UP,
        *["waiting: error", "encode", "waiting: 0"],
        *["waiting: error", "decode", "waiting: 0"],
        "end of stream own",
        "current waits for own",
        "stream current",
        "record 0 on own with None",
        "encode",
        "end of record 0 on own with None",
        "end of stream current",
        "stream current",
        "record 1 on own with pool of 0",
        "decode",
        "end of record 1 on own with pool of 0",
        "end of stream current",
        "end of device 1",
    ]
    log.clear()
    assert [replay() for replay in replays.values()] == ["memory", "logits"]
    assert log == ["replay 0", "replay 1"]


@pytest.mark.parametrize("when", ["waiting: error", "record"])
def test_what_cuda_refuses_is_one_line(log: list[str], when: str) -> None:
    """Mostly before anything is recorded: a recording that is broken off would spoil all others of the process."""

    def asks() -> None:
        if any(line.startswith(when) for line in log):
            raise RuntimeError("called a synchronizing\nCUDA operation")

    with pytest.raises(ConfigError) as raised:
        recorded({"decoder": asks}, "cuda:0")
    assert str(raised.value) == (
        "part 'decoder' of the pass cannot be recorded as a CUDA graph (called a synchronizing CUDA operation); measure"
        " without CUDA graphs"
    )
    assert any(line.startswith("record") for line in log) == (when == "record")
    assert "waiting: 0" in log


def test_what_a_recorded_pass_reads_lives_as_long_as_it(log: list[str]) -> None:
    class Workload:
        def run(self) -> str:
            return "logits"

    workload = Workload()
    alive = weakref.ref(workload)
    replays = recorded({"network": workload.run}, "cuda")
    del workload
    assert alive() is not None
    replays.clear()
    assert alive() is None


def test_recordings_are_outside_inference_mode_and_without_collections(log: list[str]) -> None:
    seen = []
    with torch.inference_mode():
        recorded({"network": lambda: seen.append((torch.is_inference_mode_enabled(), gc.isenabled()))}, "cuda")
        assert torch.is_inference_mode_enabled()
    assert set(seen) == {(False, False)} and gc.isenabled()
