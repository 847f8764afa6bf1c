"""Study ``overhead``: time and memory of a training step with and without experts (Mixture-of-Supernets, Table 16)."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.layers.feed_forward import ElasticFeedForward
from nas_core.layers.linear import ElasticLinear
from nas_core.layers.mos import MoSLinear
from nas_core.space import Architecture
from nas_core.studies.base import (
    ArchitecturesConfig,
    Bars,
    Measure,
    Study,
    StudyResult,
    Subject,
    chosen,
    learned_weights,
    one_space,
    some_batches,
    to_dicts,
)
from nas_core.supernet.host import Supernet

_ADAM = 4
"""Numbers stored per parameter with Adam: parameter, gradient and two moments."""


@dataclass(frozen=True, kw_only=True)
class OverheadConfig(ArchitecturesConfig):
    """Settings of the study ``overhead``."""

    random: int = 1
    """Number of random architectures, in addition to the smallest, the middle and the largest."""
    repeats: int = 10
    """Number of measured steps with experts, and without; the median is reported."""
    warmup: int = 2
    """Number of steps before the measured ones."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.repeats < 1 or self.warmup < 0:
            raise ConfigError(f"repeats is {self.repeats} and warmup is {self.warmup}; expected at least 1 and 0")


@contextmanager
def without_experts(network: nn.Module) -> Iterator[int]:
    """Within the ``with`` block, replace all experts of each layer by its first one, without router.

    Yields:
        Bytes of the replaced experts and routers, which stay in memory.
    """
    sizes = _sizes(network)
    layers = [module for module in network.modules() if isinstance(module, ElasticFeedForward) and len(module.routers)]
    before = [(layer.fc1, layer.fc2, layer.routers) for layer in layers]
    try:
        for layer in layers:
            layer.fc1, layer.fc2, layer.routers = _first(layer.fc1), _first(layer.fc2), nn.ModuleList()
        yield sum(sizes[name] for name in sizes.keys() - _sizes(network).keys())
    finally:
        for layer, (first, second, routers) in zip(layers, before, strict=True):
            layer.fc1, layer.fc2, layer.routers = first, second, routers


def _sizes(network: nn.Module) -> dict[int, int]:
    return {id(tensor): tensor.nbytes for tensor in (*network.parameters(), *network.buffers())}


def _first(linear: ElasticLinear | MoSLinear) -> ElasticLinear:
    if not isinstance(linear, MoSLinear):
        return linear
    _, out_features, in_features = linear.weight.shape
    plain = ElasticLinear(in_features, out_features).to(linear.weight)
    with torch.no_grad():
        plain.weight.copy_(linear.weight[0])
        plain.bias.copy_(linear.bias[0])
    return plain


def held_bytes(network: nn.Module, loss: Callable[[], Tensor]) -> int:
    """Return the bytes that autograd saves for the backward pass, parameters excluded."""
    parameters = {parameter.untyped_storage().data_ptr() for parameter in network.parameters()}
    held: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            held[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        value = loss()  # freed memory may be counted twice
    del value
    return sum(held.values())


class _Overhead(Study):
    name = "overhead"
    purpose = "Time and memory of a training step with and without experts (Mixture-of-Supernets, Table 16)."
    about = (
        "The same supernet with its experts, and with only the first expert of each layer and no router, alternating"
        " on the same batch. A step is a forward pass, a backward pass and an update by Adam for one architecture; a"
        " pass is the forward pass of a search, in which experts are mixed each time. Memory is the sum of Adam's state"
        " and of the tensors saved for the backward pass; on CUDA the measured peak is reported too. The paper's Table"
        " 16 reports hours of whole trainings instead."
    )
    config = OverheadConfig

    def run(self, subjects: Sequence[Subject], config: OverheadConfig, folder: Path) -> StudyResult:
        space = one_space(subjects)
        architectures = chosen(space, config)
        rows: list[dict[str, Any]] = [
            {"supernet": subject.name, "architecture": name, **figures}
            for subject in subjects
            for name, figures in _measured(subject, architectures, config).items()
        ]
        series: dict[str, dict[str, float]] = {}
        summary = []
        for subject in subjects:
            of_subject = [row for row in rows if row["supernet"] == subject.name]
            series[subject.name] = {row["architecture"]: row["step_ms"] / row["plain_step_ms"] for row in of_subject}
            summary.append(
                {
                    "supernet": subject.name,
                    "parameters_m": of_subject[0]["parameters_m"],
                    "plain_parameters_m": of_subject[0]["plain_parameters_m"],
                    **{
                        f"{what}_more": float(np.mean([row[what] / row[f"plain_{what}"] for row in of_subject])) - 1
                        for what in ("step_ms", "pass_ms", "memory_mb")
                    },
                }
            )
        measured_columns = (
            ("step_ms", "step (ms)", ".2f"),
            ("pass_ms", "pass (ms)", ".2f"),
            ("memory_mb", "memory (MB)", ".2f"),
            ("peak_mb", "measured peak (MB)", ".1f"),
        )
        columns = [Measure("supernet", "supernet"), Measure("architecture", "architecture")]
        for key, header, spec in measured_columns:
            columns += [Measure(key, header, spec), Measure(f"plain_{key}", "without experts", spec)]
        return StudyResult(
            columns,
            rows,
            (
                Measure("supernet", "supernet"),
                Measure("parameters_m", "M parameters in all", ".3f"),
                Measure("plain_parameters_m", "without experts", ".3f"),
                Measure("step_ms_more", "step, more", "+.1%"),
                Measure("pass_ms_more", "pass, more", "+.1%"),
                Measure("memory_mb_more", "memory, more", "+.1%"),
            ),
            summary,
            Bars(series, "time of a step with experts over that without"),
            (self.about,),
            {"architectures": to_dicts(architectures)},
        )


def _measured(
    subject: Subject, architectures: dict[str, Architecture], config: OverheadConfig
) -> dict[str, dict[str, float]]:
    if not any(isinstance(module, MoSLinear) for module in subject.supernet.network.modules()):
        raise ConfigError(f"{subject.path} has no experts; overhead needs a supernet that was trained with --mos")
    (batch,) = some_batches(subject.supernet, 1)
    return {
        name: _with_and_without(subject.supernet, architecture, batch, config)
        for name, architecture in architectures.items()
    }


def _with_and_without(
    supernet: Supernet, architecture: Architecture, batch: Any, config: OverheadConfig
) -> dict[str, float]:
    times: dict[str, list[float]] = defaultdict(list)
    sizes: dict[str, float] = {}
    for turn in range(config.warmup + config.repeats):
        for prefix, experts in (("", nullcontext(0)), ("plain_", without_experts(supernet.network))):
            with experts as replaced_bytes:
                step = _Step(supernet, architecture, batch)
                for name, value in step.times().items():
                    times[f"{prefix}{name}"].append(value)
                if not turn:
                    sizes |= {f"{prefix}{name}": value for name, value in step.sizes(replaced_bytes).items()}
    return {**sizes, **{name: float(np.median(values[config.warmup :])) for name, values in times.items()}}


class _Step:
    """Training step of one architecture, with learning rate 0 so that weights do not change."""

    def __init__(self, supernet: Supernet, architecture: Architecture, batch: Any) -> None:
        self.network = supernet.network
        self.loss = partial(supernet.training_loss, architecture, batch)
        self.parameters = learned_weights(self.network)
        self.device = self.parameters[0].device
        self.optimizer = torch.optim.Adam(self.parameters, lr=0.0)

    def run(self) -> None:
        torch.autograd.backward(self.loss())
        self.optimizer.step()
        self.optimizer.zero_grad()

    def times(self) -> dict[str, float]:
        """Return milliseconds of a training step, and of a forward pass without gradients."""
        self.run()
        begin = self._now()
        self.run()
        middle = self._now()
        for parameter in self.parameters:
            parameter.requires_grad_(False)
        try:
            self.loss()
        finally:
            for parameter in self.parameters:
                parameter.requires_grad_(True)
        return {"step_ms": 1e3 * (middle - begin), "pass_ms": 1e3 * (self._now() - middle)}

    def sizes(self, replaced_bytes: int) -> dict[str, float]:
        """Return millions of parameters and MB of memory; on CUDA also the measured peak.

        Args:
            replaced_bytes: bytes to subtract from the measured peak.
        """
        count = sum(parameter.numel() for parameter in self.parameters)
        optimizer_bytes = _ADAM * sum(parameter.nbytes for parameter in self.parameters)
        figures = {
            "parameters_m": count / 1e6,
            "memory_mb": (optimizer_bytes + held_bytes(self.network, self.loss)) / 1e6,
        }
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
            torch.autograd.backward(self.loss())
            figures["peak_mb"] = (torch.cuda.max_memory_allocated(self.device) - replaced_bytes) / 1e6
            self.optimizer.zero_grad()
        return figures

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()


OVERHEAD = _Overhead()
