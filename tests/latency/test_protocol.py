import gc
import time

import pytest
import torch
from torch import nn

from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.latency import TimingConfig, measure, protocol
from nas_core.latency.protocol import time_passes_ms, trimmed_mean


class Clock:
    """Stands still but for what workloads add to it; ``slow`` is the state of the machine."""

    def __init__(self) -> None:
        self.now_s, self.slow = 0.0, 1.0

    def perf_counter(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(protocol, "time", clock)
    return clock


class Work:
    """Takes ``ms`` in two equal parts."""

    modules: tuple[nn.Module, ...] = ()

    def __init__(self, ms: float, clock: Clock) -> None:
        self.ms, self.clock, self.calls = ms, clock, 0

    @property
    def parts(self):
        return {"first": self._run, "second": self._run}

    def _run(self) -> None:
        self.calls += 1
        self.clock.now_s += self.ms * self.clock.slow / 2e3


def test_parts_and_total_are_in_milliseconds(clock):
    found = measure(Work(8, clock), Work(2, clock), TimingConfig(repeats=5, warmup=0))
    assert found.parts_ms == pytest.approx({"first": 4, "second": 4})
    assert (found.raw_ms, found.reference_ms, found.relative) == pytest.approx((8, 2, 4))
    assert (found.std_ms, found.mad_ms) == pytest.approx((0, 0), abs=1e-9)


def test_a_slower_machine_is_divided_out(clock):
    workload, reference, config = Work(6, clock), Work(2, clock), TimingConfig(repeats=5, warmup=0)
    fast = measure(workload, reference, config)
    clock.slow = 3.0
    slow = measure(workload, reference, config)
    assert slow.raw_ms == pytest.approx(18)
    assert slow.corrected_ms(fast.reference_ms) == pytest.approx(6)


def test_a_disturbance_in_the_middle_does_not_move_the_corrected_time(clock):
    class Disturbed(Work):
        def _run(self) -> None:
            clock.slow = 4.0 if 6 <= self.calls < 12 else 1.0  # three of eight passes, and the references after them
            super()._run()

    found = measure(Disturbed(6, clock), Work(6, clock), TimingConfig(repeats=8, warmup=0))
    assert found.raw_ms > 8 and found.std_ms > 1
    assert found.relative == pytest.approx(1)
    assert found.mad_ms == pytest.approx(0, abs=1e-9)


def test_reference_runs_before_between_and_after(clock):
    workload, reference = Work(1, clock), Work(1, clock)
    measure(workload, reference, TimingConfig(repeats=4, warmup=3))
    assert workload.calls == 2 * (3 + 4)
    assert reference.calls == 2 * (3 + 4 + 1)


def test_trimmed_mean_drops_both_ends():
    assert trimmed_mean([1000.0, *[5.0] * 8, -1000.0], 0.1) == 5.0
    assert trimmed_mean([1.0, 2.0, 6.0], 0.1) == 3.0  # a tenth of three is none


def test_threads_are_pinned_and_restored_and_inference_mode_is_on():
    seen = []

    class Watcher:
        modules = ()

        @property
        def parts(self):
            return {
                "all": lambda: seen.append((torch.get_num_threads(), torch.is_inference_mode_enabled(), gc.isenabled()))
            }

    before = torch.get_num_threads()
    time_passes_ms(Watcher(), TimingConfig(threads=before + 1, repeats=1, warmup=0))
    assert seen == [(before + 1, True, False)]
    assert torch.get_num_threads() == before and gc.isenabled()


def test_everything_is_restored_when_a_workload_fails():
    class Broken:
        modules = ()
        parts = {"all": lambda: 1 / 0}  # noqa: RUF012

    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError):
        time_passes_ms(Broken(), TimingConfig(threads=before + 1))
    assert torch.get_num_threads() == before and gc.isenabled()


def test_training_mode_is_refused(clock):
    class Training(Work):
        modules = (nn.Sequential(nn.Linear(1, 1), nn.Dropout()).eval(),)

    Training.modules[0][1].train()  # a submodule is enough
    with pytest.raises(ConfigError, match="Dropout is in training mode"):
        measure(Work(1, clock), Training(1, clock), TimingConfig())


def test_cpu_clock_does_not_count_waiting():
    class Sleeper:
        modules = ()
        parts = {"all": lambda: time.sleep(0.03)}  # noqa: RUF012

    passes = [time_passes_ms(Sleeper(), TimingConfig(repeats=3, clock=clock)) for clock in ("wall", "cpu")]
    assert min(passes[0]) >= 29
    assert max(passes[1]) < 15


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"repeats": 0}, "repeats is 0, expected at least 1"),
        ({"repeats": 2.5}, "repeats is 2.5; expected a whole number"),
        ({"warmup": "2"}, "warmup is '2'; expected a whole number"),
        ({"trim": 0.5}, "trim is 0.5"),
        ({"trim": "half"}, "trim is 'half'; expected a number"),
        ({"device": "abacus"}, "device 'abacus'"),
        ({"clock": "cpu", "threads": 2}, "one thread"),
    ],
)
def test_wrong_settings(setting, message):
    with pytest.raises(ConfigError, match=message):
        TimingConfig(**setting)


def test_unknown_clock_names_the_choices():
    with pytest.raises(UnknownChoiceError, match="wall, cpu"):
        TimingConfig(clock="sundial")


def test_what_counts_is_the_reference_on_both_sides(clock):
    """On a machine that becomes slower steadily, the reference before alone would be too fast."""

    class Slower(Work):
        def _run(self) -> None:
            super()._run()
            clock.slow += 0.1

    found = measure(Slower(6, clock), Slower(2, clock), TimingConfig(repeats=5, warmup=0))
    assert found.relative == pytest.approx(3)
