"""Settings of a measurement, and workloads prepared for them: half precision, graphs, clocks of a CUDA device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import nn

from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.latency import TimingConfig, measure, protocol
from nas_core.latency.protocol import prepared, time_passes_ms
from nas_core.models import OnePassWorkload


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"clock": "device"}, "clock by events is for CUDA devices, which cpu is not"),
        ({"cuda_graphs": True}, "cuda_graphs is for CUDA devices, which cpu is not"),
        ({"precision": "tf32"}, "precision tf32 is for CUDA devices, which cpu is not"),
        ({"clock": "cpu", "device": "cuda"}, "one thread on the CPU"),
    ],
)
def test_what_is_of_a_cuda_device(setting: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        TimingConfig(**setting)


def test_an_unknown_precision_names_the_choices() -> None:
    with pytest.raises(UnknownChoiceError, match="fp32, tf32, bf16, fp16"):
        TimingConfig(precision="fp8")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_settings_may_be_for_another_machine_but_not_be_used_here() -> None:
    timing = TimingConfig(device="cuda", clock="device", precision="tf32", cuda_graphs=True)
    with pytest.raises(ConfigError, match="device 'cuda' is not usable here"):
        timing.checked_here()


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_weights_and_real_inputs_are_converted_once(precision: str) -> None:
    seen: list[torch.dtype] = []

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
            seen.extend([x.dtype, self.linear.weight.dtype, index.dtype])
            return self.linear(x)[index]

    timing = TimingConfig(precision=precision, warmup=0, repeats=1)
    workload = OnePassWorkload(Net(), [torch.randn(4, 4), torch.tensor([1])])
    ready = prepared(workload, timing)
    assert prepared(ready, timing) is ready
    assert time_passes_ms(ready, timing)[0] > 0
    half = {"bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    assert seen == [half, half, torch.int64]


def test_a_workload_that_cannot_be_converted_is_told() -> None:
    class Fixed:
        modules = ()
        parts = {"all": lambda: None}  # noqa: RUF012

    plain, half = TimingConfig(), TimingConfig(precision="bf16")
    assert isinstance(prepared(Fixed(), plain), Fixed)
    with pytest.raises(ConfigError, match="Fixed computes in fp32 alone"):
        measure(Fixed(), Fixed(), half)


class Events:
    """CUDA as far as it is asked for here, without a device: events that are a millisecond apart for each kernel."""

    def __init__(self) -> None:
        self.kernels, self.synchronised = 0.0, 0

    def event(self, enable_timing: bool) -> Any:
        assert enable_timing
        owner = self

        class Event:
            at = -1.0

            def record(self, stream: object) -> None:
                assert stream == "stream of 1"
                self.at = owner.kernels

            def synchronize(self) -> None:
                owner.synchronised += 1

            def elapsed_time(self, end: Event) -> float:
                return end.at - self.at

        return Event()


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Iterator[Events]:
    made = Events()
    monkeypatch.setattr("torch.cuda.Event", made.event)
    monkeypatch.setattr("torch.cuda.current_stream", lambda index: f"stream of {index}")
    monkeypatch.setattr("torch.cuda.synchronize", lambda index: None)
    monkeypatch.setattr("torch.cuda.device", lambda index: nullcontext())
    monkeypatch.setattr(protocol, "clock_state", lambda device: {"source": "test", "device": device})
    return made


def test_the_clock_of_the_device_waits_once_for_each_pass(events: Events) -> None:
    class Work:
        modules = ()

        @property
        def parts(self) -> dict[str, Any]:
            return {"first": lambda: self.launch(2.0), "second": lambda: self.launch(3.0)}

        def launch(self, kernels: float) -> None:
            events.kernels += kernels

    timing = TimingConfig(device="cuda:1", clock="device", warmup=1, repeats=2)
    found = measure(Work(), Work(), timing)
    assert found.parts_ms == {"first": 2.0, "second": 3.0}
    assert (found.raw_ms, found.reference_ms, found.relative) == (5.0, 5.0, 1.0)
    assert events.synchronised == 2 * (1 + 2) + 1  # a pass of either, and the reference once more
    assert found.clock_state == {"source": "test", "device": "cuda:1"}
