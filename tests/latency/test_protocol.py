"""Timing on a clock that only workloads move, and the settings of a measurement."""

from __future__ import annotations

import gc
import time
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import nn

from nas_core.errors import ConfigError
from nas_core.latency import TimingConfig, measure, protocol
from nas_core.latency.protocol import time_passes_ms
from nas_core.models.workload import OnePassWorkload
from tests.latency.by_genes.machine import Machine


class Work:
    """Takes ``ms`` in two equal parts."""

    modules: tuple[nn.Module, ...] = ()

    def __init__(self, ms: float, clock: Machine) -> None:
        self.ms, self.clock, self.calls = ms, clock, 0

    @property
    def components(self) -> dict[str, Any]:
        return {"first": self._run, "second": self._run}

    def _run(self) -> None:
        self.calls += 1
        self.clock.now_s += self.ms * self.clock.slow / 2e3


class One:
    """One function as a workload."""

    modules: tuple[nn.Module, ...] = ()

    def __init__(self, function: Any) -> None:
        self.components = {"all": function}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(protocol, "time", machine)
    return machine


def test_parts_and_totals_of_interleaved_passes(clock: Machine) -> None:
    workload, reference = Work(8, clock), Work(2, clock)
    measured = measure(workload, reference, TimingConfig(repeats=5, warmup=3))
    assert measured.components_ms == pytest.approx({"first": 4, "second": 4})
    assert (measured.raw_ms, measured.reference_ms, measured.relative) == pytest.approx((8, 2, 4))
    assert (measured.std_ms, measured.mad_ms) == pytest.approx((0, 0), abs=1e-9)
    assert (workload.calls, reference.calls) == (2 * (3 + 5), 2 * (3 + 5 + 1))
    clock.slow = 3.0
    slow = measure(workload, reference, TimingConfig(repeats=5, warmup=0))
    assert slow.raw_ms == pytest.approx(24)
    assert slow.corrected_ms(measured.reference_ms) == pytest.approx(8), "a slower machine is divided out"


def test_a_disturbance_in_the_middle_does_not_move_the_corrected_time(clock: Machine) -> None:
    class Disturbed(Work):
        def _run(self) -> None:
            clock.slow = 4.0 if 6 <= self.calls < 12 else 1.0  # three of eight passes, and the references after them
            super()._run()

    measured = measure(Disturbed(6, clock), Work(6, clock), TimingConfig(repeats=8, warmup=0))
    assert measured.raw_ms > 8 and measured.std_ms > 1
    assert (measured.relative, measured.mad_ms) == pytest.approx((1, 0), abs=1e-9)


def test_the_reference_on_both_sides_counts(clock: Machine) -> None:
    """On a machine that becomes slower steadily, the reference before alone would be too fast."""

    class Slower(Work):
        def _run(self) -> None:
            super()._run()
            clock.slow += 0.1

    measured = measure(Slower(6, clock), Slower(2, clock), TimingConfig(repeats=5, warmup=0))
    assert measured.relative == pytest.approx(3)


@pytest.mark.parametrize("fails", [False, True])
def test_conditions_of_a_pass_are_restored(fails: bool) -> None:
    states = []

    def run() -> None:
        states.append((torch.get_num_threads(), torch.is_inference_mode_enabled(), gc.isenabled()))
        if fails:
            raise ZeroDivisionError

    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError) if fails else nullcontext():
        time_passes_ms(One(run), TimingConfig(threads=before + 1, repeats=1, warmup=0))
    assert states == [(before + 1, True, False)]
    assert torch.get_num_threads() == before and gc.isenabled()


def test_cpu_clock_does_not_count_waiting() -> None:
    sleeper = One(lambda: time.sleep(0.03))
    passes = [time_passes_ms(sleeper, TimingConfig(repeats=3, clock=clock)) for clock in ("wall", "cpu")]
    assert min(passes[0]) >= 29
    assert max(passes[1]) < 15


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_weights_and_real_inputs_are_converted(precision: str) -> None:
    types: list[torch.dtype] = []

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
            types.extend([x.dtype, self.linear.weight.dtype, index.dtype])
            return self.linear(x)[index]

    timing = TimingConfig(precision=precision, warmup=0, repeats=1)
    workload = OnePassWorkload(Net(), [torch.randn(4, 4), torch.tensor([1])])
    assert time_passes_ms(workload, timing)[0] > 0
    half = {"bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    assert types == [half, half, torch.int64]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_settings_may_be_for_another_machine_but_not_be_used_here() -> None:
    timing = TimingConfig(device="cuda", clock="device", precision="tf32")
    with pytest.raises(ConfigError, match="device 'cuda' is not usable here"):
        timing.checked_here()
