"""A machine whose clock only the measured work moves, and collections on it."""

from torch import nn

from nas_core.latency import TimingConfig
from nas_core.latency.by_genes.collect import collect
from nas_core.space import get_space

TIMING = TimingConfig(repeats=2, warmup=0)
WORKLOAD = {"kind": "test", "length": 3}


class Machine:
    """A clock that only workloads move; slower from one architecture to the next."""

    def __init__(self, slower: float = 1.0) -> None:
        self.now_s, self.slow, self.slower, self.built = 0.0, 1.0, slower, []

    def perf_counter(self) -> float:
        return self.now_s

    def build(self, architecture):
        self.built.append(architecture)
        self.slow *= self.slower
        return Work(1.0 + len(architecture.numbers("decoder.ffn_dim")), self)


class Work:
    modules: tuple[nn.Module, ...] = ()

    def __init__(self, ms: float, machine: Machine) -> None:
        self.ms, self.machine = ms, machine

    @property
    def components(self):
        return {"encoder": lambda: self._run(0.25), "decoder": lambda: self._run(0.75)}

    def _run(self, share: float) -> None:
        self.machine.now_s += self.ms * share * self.machine.slow / 1e3


def run(path, machine, samples, **changed):
    settings = {"timing": TIMING, "workload": WORKLOAD, "seed": 4, "progress": False, **changed}
    return collect(path, settings.pop("space", get_space("hat_small")), machine.build, samples, **settings)
