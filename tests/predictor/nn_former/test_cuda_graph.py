"""Forward passes over padded batches, recorded where the device can."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from nas_core.predictor import Batch, NNFormer, NNFormerConfig
from nas_core.predictor.nn_former import place
from nas_core.predictor.nn_former import scorer as cuda_graph
from nas_core.predictor.nn_former.scorer import Frozen, Scorer, StaticForward
from tests.predictor.graphs import random_graphs
from tests.predictor.nn_former.lively import lively

CPU = torch.device("cpu")


def model() -> NNFormer:
    return lively(NNFormerConfig.accuracy(dim=32, depth=3)).eval()


@pytest.mark.parametrize("change", [{}, {"feed_forward": "vanilla"}, {"sibling_mask": "as_released"}])
@torch.inference_mode()
def test_dense_sums_give_what_lists_give(change: dict[str, str]) -> None:
    made = lively(NNFormerConfig.accuracy(dim=32, depth=3, **change)).eval()
    frozen, graphs = Frozen(made, torch.float32), random_graphs((7,) * 20)
    expected = frozen(Batch.of(graphs))
    assert expected.std() > 1e-3
    torch.testing.assert_close(frozen.dense(Batch.of(graphs)), expected, atol=1e-5, rtol=0)


@torch.inference_mode()
def test_padding_does_not_touch_the_predictions() -> None:
    frozen, graphs = Frozen(model(), torch.float32), random_graphs((7,) * 12)
    static = StaticForward(frozen.dense, 8, 7, CPU)
    assert not static.recorded
    expected = frozen(Batch.of(graphs))
    first = static(Batch.of(graphs, np.arange(8)))
    second = static(Batch.of(graphs, np.arange(8, 12)))
    assert second.shape == (4,)
    torch.testing.assert_close(torch.cat([first, second]), expected, atol=1e-5, rtol=0)


class Cuda:
    """What is asked of torch.cuda, in order; recorded passes are computed anew when they are replayed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: bool = False) -> None:
        self.told: list[str] = []
        self.fails, self.streams, self.current = fails, 0, "caller"
        monkeypatch.setattr(cuda_graph, "recordable", lambda device: True)
        for name in ("device", "stream", "graph"):
            monkeypatch.setattr(torch.cuda, name, getattr(self, name))
        monkeypatch.setattr(torch.cuda, "Stream", lambda device: self.Stream(self, f"{self.counted()} of {device}"))
        monkeypatch.setattr(torch.cuda, "Event", lambda: Event(self))
        monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: self)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: self.Stream(self, self.current))

    def counted(self) -> int:
        self.streams += 1
        return self.streams

    class Stream:
        def __init__(self, cuda: Cuda, name: str) -> None:
            self.cuda, self.name = cuda, name

        def wait_stream(self, other: Cuda.Stream) -> None:
            self.cuda.told.append(f"{self.name} waits for {other.name}")

        def wait_event(self, event: str) -> None:
            self.cuda.told.append(f"{self.name} waits for {event}")

    @contextmanager
    def device(self, device: torch.device) -> Iterator[None]:
        self.told.append(f"on {device}")
        yield
        self.told.append(f"off {device}")

    @contextmanager
    def stream(self, stream: Cuda.Stream) -> Iterator[None]:
        self.current, before = stream.name, self.current
        yield
        self.current = before

    @contextmanager
    def graph(self, graph: Cuda, stream: Cuda.Stream, capture_error_mode: str) -> Iterator[None]:
        assert graph is self and capture_error_mode == "thread_local"
        if self.fails:
            raise RuntimeError("operation not permitted when stream is capturing")
        with self.stream(stream):
            yield

    def forward(self, batch: Batch) -> torch.Tensor:
        self.told.append(f"pass in {self.current}")
        self.batch, self.output = batch, sums_of(batch)
        return self.output

    def replay(self) -> None:
        self.told.append(f"replay in {self.current}")
        self.output.copy_(sums_of(self.batch))


def sums_of(batch: Batch) -> torch.Tensor:
    return batch.ops.sum(1) + 100.0 * batch.adjacency.sum((1, 2))


def test_recording_and_replaying_on_its_own_device(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = Cuda(monkeypatch)
    static = StaticForward(cuda.forward, 8, 7, CPU)
    assert static.recorded
    assert cuda.told == [
        "on cpu", "1 of cpu waits for caller", *["pass in 1 of cpu"] * 3, "caller waits for 1 of cpu",
        "pass in 2 of cpu", "off cpu",
    ]  # fmt: skip
    graphs, cuda.told = random_graphs((7,) * 12), []
    with torch.inference_mode():
        cuda.current = "other"
        first, second = (static(Batch.of(graphs, rows)) for rows in (np.arange(8), np.arange(8, 12)))
    assert cuda.told == ["on cpu", "other waits for finished", "replay in other", "finished in other", "off cpu"] * 2
    torch.testing.assert_close(torch.cat([first, second]), sums_of(Batch.of(graphs)), rtol=0, atol=0)
    third = static(Batch.of(graphs, np.arange(4)))
    torch.testing.assert_close(third, first[:4], rtol=0, atol=0)


class Event:
    """Recorded after a pass, awaited before the next one writes into its memory."""

    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda

    def __str__(self) -> str:
        return "finished"

    def record(self, stream: Cuda.Stream) -> None:
        self.cuda.told.append(f"finished in {stream.name}")


def test_where_recording_fails_passes_run_one_by_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cuda, graphs = Cuda(monkeypatch, fails=True), random_graphs((7,) * 5)
    static = StaticForward(cuda.forward, 8, 7, CPU)
    assert not static.recorded and "cannot be recorded" in caplog.text
    torch.testing.assert_close(static(Batch.of(graphs)), sums_of(Batch.of(graphs)), rtol=0, atol=0)


@torch.inference_mode()
def test_what_is_recorded_is_freed_with_its_scorer(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, not by the collector: a graph that is freed while another is recorded ends that recording."""
    monkeypatch.setattr(place, "HOSTS", ())
    scorer, graphs = Scorer(model(), "fp32"), random_graphs((7,) * 5)
    assert scorer(graphs).shape == (5,) and scorer.frozen is not None
    alive = weakref.ref(scorer.frozen)
    gc.disable()
    try:
        del scorer
        assert alive() is None
    finally:
        gc.enable()


def test_a_pass_runs_outside_inference_mode_with_weights_of_it() -> None:
    """There it is recorded."""
    graphs = random_graphs((7,) * 6)
    with torch.inference_mode():
        frozen = Scorer(model(), "fp32").frozen
        assert frozen is not None
        expected = frozen.dense(Batch.of(graphs))
    with torch.no_grad():
        assert torch.equal(frozen.dense(Batch.of(graphs)), expected.clone())
