"""Recording without a device: the calls of CUDA in order, and the error if it cannot record."""

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
    """Calls of the part of CUDA that recording needs."""
    calls: list[str] = []

    class Graph:
        def __init__(self) -> None:
            self.number = sum(line.startswith("record") for line in calls)

        def pool(self) -> str:
            return "pool of 0"

        def replay(self) -> None:
            calls.append(f"replay {self.number}")

    @contextmanager
    def block(name: str) -> Iterator[None]:
        calls.append(name)
        yield
        calls.append(f"end of {name}")

    def record(graph: Graph, pool: object, stream: Stream) -> Any:
        return block(f"record {graph.number} on {stream.name} with {pool}")

    cuda = cuda_graphs.torch.cuda
    for name, value in {
        "device": lambda index: block(f"device {index}"),
        "current_stream": lambda: Stream("current", calls),
        "Stream": lambda: Stream("new", calls),
        "stream": lambda stream: block(f"stream {stream.name}"),
        "CUDAGraph": Graph,
        "graph": record,
        "get_sync_debug_mode": lambda: 0,
        "set_sync_debug_mode": lambda mode: calls.append(f"waiting: {mode}"),
    }.items():
        monkeypatch.setattr(cuda, name, value)
    return calls


def test_parts_are_warmed_up_recorded_on_one_stream_in_one_pool_and_replayed(log: list[str]) -> None:
    parts = {
        "encoder": lambda: log.append("encode") or "memory",  # type: ignore[func-returns-value]
        "decoder": lambda: log.append("decode") or "logits",  # type: ignore[func-returns-value]
    }
    replays = recorded(parts, "cuda:1")
    assert log == [
        "device 1",
        "new waits for current",
        "stream new",
        *["encode", "decode"] * WARM_UP,
        *["waiting: error", "encode", "waiting: 0"],
        *["waiting: error", "decode", "waiting: 0"],
        "end of stream new",
        "current waits for new",
        "stream current",
        "record 0 on new with None",
        "encode",
        "end of record 0 on new with None",
        "end of stream current",
        "stream current",
        "record 1 on new with pool of 0",
        "decode",
        "end of record 1 on new with pool of 0",
        "end of stream current",
        "end of device 1",
    ]
    log.clear()
    assert [replay() for replay in replays.values()] == ["memory", "logits"]
    assert log == ["replay 0", "replay 1"]


@pytest.mark.parametrize("when", ["waiting: error", "record"])
def test_the_error_is_one_line(log: list[str], when: str) -> None:
    """It comes mostly before anything is recorded: a broken recording would spoil all others of the process."""

    def synchronise() -> None:
        if any(line.startswith(when) for line in log):
            raise RuntimeError("called a synchronizing\nCUDA operation")

    with pytest.raises(ConfigError, match=r"part 'decoder' .*\(called a synchronizing CUDA operation\)"):
        recorded({"decoder": synchronise}, "cuda:0")
    assert any(line.startswith("record") for line in log) == (when == "record")
    assert "waiting: 0" in log


def test_inputs_of_a_recorded_pass_live_as_long_as_it(log: list[str]) -> None:
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
    states = []
    with torch.inference_mode():
        recorded({"network": lambda: states.append((torch.is_inference_mode_enabled(), gc.isenabled()))}, "cuda")
        assert torch.is_inference_mode_enabled()
    assert set(states) == {(False, False)} and gc.isenabled()
