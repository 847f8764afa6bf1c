"""Workloads for a network in onnxruntime or torch."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nas_core.device import device_index
from nas_core.errors import ConfigError, unknown_choice
from nas_core.latency.by_graph.dataset.export import input_names, outputs_of
from nas_core.latency.cuda_graphs import recorded
from nas_core.latency.protocol import TimingConfig, timed_conditions
from nas_core.optional import require
from nas_core.precision import half_type

RUNTIMES = ("onnxruntime", "torch")


class NetworkWorkload(ABC):
    """Network with inputs and outputs on the device."""

    modules: Sequence[nn.Module] = ()
    conditions: tuple[str, bool]
    """Precision, and use of CUDA graphs."""
    at_a_time = 1
    """Passes timed together as one."""

    @property
    def parts(self) -> Mapping[str, Callable[[], object]]:
        return {"network": self._passes}

    def _passes(self) -> None:
        for _ in range(self.at_a_time):
            self.run()

    @abstractmethod
    def run(self) -> object:
        """Run one pass."""

    @abstractmethod
    def outputs(self) -> list[NDArray[np.float32]]:
        """Return the outputs of a pass."""


class TorchWorkload(NetworkWorkload):
    """Module of torch without compilation."""

    def __init__(self, network: nn.Module, inputs: Sequence[Tensor], timing: TimingConfig) -> None:
        half, self._timing = half_type(timing.precision), timing
        network.to(timing.device, half)
        placed = [x.to(timing.device, half if x.is_floating_point() else None) for x in inputs]
        self.modules = [network]
        self.conditions = timing.precision, timing.cuda_graphs
        self._pass: Callable[[], Any] = functools.partial(network, *placed)
        if timing.cuda_graphs:
            with timed_conditions(timing):  # no method of this object, which would keep itself alive through its replay
                self._pass = recorded({"network": self._pass}, timing.device)["network"]

    def run(self) -> Tensor | Sequence[Tensor]:
        result: Tensor | Sequence[Tensor] = self._pass()
        return result

    def outputs(self) -> list[NDArray[np.float32]]:
        with timed_conditions(self._timing):
            return [output.float().cpu().numpy() for output in outputs_of(self.run())]


class OnnxWorkload(NetworkWorkload):
    """Session of onnxruntime with all optimisations; TF32 only if the precision is ``tf32``."""

    def __init__(self, content: bytes, inputs: Sequence[Tensor], timing: TimingConfig) -> None:
        runtime = require("onnxruntime", "measuring in onnxruntime", "onnx")
        device = torch.device(timing.device)
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = timing.threads, 1
        options.log_severity_level = 3  # errors; its warnings are about optimisations
        provider = f"{device.type.upper()}ExecutionProvider"
        index = device_index(device)
        self.conditions = timing.precision, False
        self._session = runtime.InferenceSession(content, options, providers=[(provider, provider_options(timing))])
        # onnxruntime drops a provider whose libraries are missing with no more than a line in the log.
        if self._session.get_providers()[:1] != [provider]:
            raise ConfigError(
                f"onnxruntime cannot use {provider} here; install onnxruntime-gpu in place of onnxruntime for CUDA, or"
                " give --device cpu or --set runtimes=torch"
            )
        self._session.disable_fallback()
        self._binding = self._session.io_binding()
        by_name = dict(zip(input_names(len(inputs)), inputs, strict=True))
        for node in self._session.get_inputs():  # without those that the exporter found unused
            value = runtime.OrtValue.ortvalue_from_numpy(by_name[node.name].cpu().numpy(), device.type, index)
            self._binding.bind_ortvalue_input(node.name, value)
        for output in self._session.get_outputs():
            self._binding.bind_output(output.name, device.type, index)

    def run(self) -> None:
        self._session.run_with_iobinding(self._binding)
        self._binding.synchronize_outputs()

    def outputs(self) -> list[NDArray[np.float32]]:
        self.run()
        return [output.astype(np.float32) for output in self._binding.copy_outputs_to_cpu()]


def workload(
    runtime: str, network: nn.Module, inputs: Sequence[Tensor], content: bytes, timing: TimingConfig
) -> NetworkWorkload:
    if runtime == "torch":
        return TorchWorkload(network, inputs, timing)
    return OnnxWorkload(content, inputs, timing)


def provider_options(timing: TimingConfig) -> dict[str, str]:
    if torch.device(timing.device).type != "cuda":
        return {}
    return {"device_id": str(device_index(timing.device)), "use_tf32": "1" if timing.precision == "tf32" else "0"}


def check_runtimes(runtimes: Sequence[str], timing: TimingConfig) -> dict[str, Any]:
    """Return the versions of the runtimes.

    Raises:
        ConfigError: a runtime is unknown, or the timing is for torch alone.
    """
    for name in runtimes:
        if name not in RUNTIMES:
            raise unknown_choice("runtime", name, RUNTIMES)
    if "onnxruntime" not in runtimes:
        return {}
    for setting, is_set in (
        (f"precision {timing.precision}", half_type(timing.precision) is not None),
        ("cuda_graphs", timing.cuda_graphs),
        ("clock device", timing.clock == "device"),
    ):
        if is_set:
            raise ConfigError(
                f"{setting} is for networks in torch, not in onnxruntime: leave it out, or --set runtimes=torch"
            )
    return {"onnxruntime": str(require("onnxruntime", "measuring in onnxruntime", "onnx").__version__)}
