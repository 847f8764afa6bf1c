"""One network in onnxruntime and in torch, as workloads of the timing protocol."""

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
from nas_core.errors import ConfigError, MissingHostError, unknown_choice
from nas_core.latency.by_graph.dataset.export import input_names, outputs_of
from nas_core.latency.cuda_graphs import recorded
from nas_core.latency.timing import TimingConfig, timed_conditions
from nas_core.optional import require
from nas_core.precision import half_type

RUNTIMES = ("onnxruntime", "torch")
_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


class NetworkWorkload(ABC):
    """Passes of a network: inputs and outputs stay on the device."""

    modules: Sequence[nn.Module] = ()
    conditions: tuple[str, bool]
    """Precision, and whether passes are recorded as CUDA graphs: it is made for them, and not prepared again."""
    at_a_time = 1
    """Passes that are timed together, and count as one to the timing protocol."""

    @property
    def parts(self) -> Mapping[str, Callable[[], object]]:
        return {"network": self._passes}

    def _passes(self) -> None:
        for _ in range(self.at_a_time):
            self.run()

    @abstractmethod
    def run(self) -> object:
        """One pass."""

    @abstractmethod
    def outputs(self) -> list[NDArray[np.float32]]:
        """What a pass gives, as real numbers."""


class TorchWorkload(NetworkWorkload):
    """The module as it is, without compilation."""

    def __init__(self, network: nn.Module, inputs: Sequence[Tensor], timing: TimingConfig) -> None:
        half, self._timing = half_type(timing.precision), timing
        self._network = network.to(timing.device)
        self._inputs = [x.to(timing.device) for x in inputs]
        if half is not None:
            network.to(half)
            self._inputs = [x.to(half) if x.is_floating_point() else x for x in self._inputs]
        self.modules = [network]
        self.conditions = timing.precision, timing.cuda_graphs
        self._replay: Callable[[], Any] | None = None
        if timing.cuda_graphs:
            with timed_conditions(timing):  # a function without this object, which would keep itself through its replay
                part = functools.partial(self._network, *self._inputs)
                self._replay = recorded({"network": part}, timing.device)["network"]

    def run(self) -> Tensor | Sequence[Tensor]:
        result: Tensor | Sequence[Tensor] = self._pass() if self._replay is None else self._replay()
        return result

    def _pass(self) -> Tensor | Sequence[Tensor]:
        result: Tensor | Sequence[Tensor] = self._network(*self._inputs)
        return result

    def outputs(self) -> list[NDArray[np.float32]]:
        with timed_conditions(self._timing):
            return [output.float().cpu().numpy() for output in outputs_of(self.run())]


class OnnxWorkload(NetworkWorkload):
    """A session of onnxruntime with all its optimisations, on so many threads.

    On a CUDA device its products of float32 numbers are in TF32 by default; here as the precision says.

    Raises:
        ConfigError: it would compute elsewhere than on the device.
    """

    def __init__(self, content: bytes, inputs: Sequence[Tensor], timing: TimingConfig) -> None:
        runtime = require("onnxruntime", "measuring in onnxruntime", "onnx")
        device = torch.device(timing.device)
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = timing.threads, 1
        options.log_severity_level = 3  # errors; its warnings are about optimisations it leaves out
        provider = _PROVIDERS[device.type]
        index = device_index(device)
        self.conditions = timing.precision, False
        self._session = runtime.InferenceSession(content, options, providers=[(provider, provider_options(timing))])
        # A provider whose libraries are missing is left out with no more than a line in the log.
        if self._session.get_providers()[:1] != [provider]:
            raise ConfigError(f"onnxruntime cannot use {provider} here; give --device cpu, or --set runtimes=torch")
        self._session.disable_fallback()
        self._binding = self._session.io_binding()
        given = dict(zip(input_names(len(inputs)), inputs, strict=True))
        for wanted in self._session.get_inputs():  # without those that the exporter found unused
            array = given[wanted.name].cpu().numpy()
            value = runtime.OrtValue.ortvalue_from_numpy(array, device.type, index)
            self._binding.bind_ortvalue_input(wanted.name, value)
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
    """The network in that runtime; ``content`` is its ONNX file."""
    if runtime == "torch":
        return TorchWorkload(network, inputs, timing)
    return OnnxWorkload(content, inputs, timing)


def provider_options(timing: TimingConfig) -> dict[str, str]:
    """What onnxruntime's provider for the device is told, as texts: the device's number, and whether TF32 is used."""
    if torch.device(timing.device).type != "cuda":
        return {}
    return {"device_id": str(device_index(timing.device)), "use_tf32": "1" if timing.precision == "tf32" else "0"}


def check_runtimes(runtimes: Sequence[str], timing: TimingConfig) -> dict[str, Any]:
    """Check that the runtimes can measure so; their versions, for the description of the machine.

    Raises:
        UnknownChoiceError: there is no such runtime. ConfigError: none or one twice, onnxruntime cannot use the device,
            or the timing is one that is for torch alone. MissingHostError: onnx or onnxruntime is not installed.
    """
    for name in runtimes:
        if name not in RUNTIMES:
            raise unknown_choice("runtime", name, RUNTIMES)
    if not runtimes or len(set(runtimes)) < len(runtimes):
        raise ConfigError(f"runtimes are {list(runtimes)}; expected {' and '.join(RUNTIMES)}, or one of them")
    if "onnxruntime" not in runtimes:
        return {}
    for what, asked in (
        (f"precision {timing.precision}", half_type(timing.precision) is not None),
        ("cuda_graphs", timing.cuda_graphs),
        ("clock device", timing.clock == "device"),
    ):
        if asked:
            raise ConfigError(
                f"{what} is for networks in torch, not in onnxruntime: leave it out, or --set runtimes=torch"
            )
    runtime = require("onnxruntime", "measuring in onnxruntime", "onnx")
    kind = torch.device(timing.device).type
    if _PROVIDERS.get(kind) not in runtime.get_available_providers():
        if kind == "cuda":
            raise MissingHostError(
                "onnxruntime has no CUDA here: pip install onnxruntime-gpu in place of onnxruntime, or measure with "
                "--set runtimes=torch"
            )
        raise ConfigError(
            f"onnxruntime does not run on {timing.device!r} here; give --device cpu, or --set runtimes=torch"
        )
    return {"onnxruntime": str(runtime.__version__)}
