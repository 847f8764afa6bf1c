"""Execution of a network in onnxruntime or torch, for latency measurement."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nas_core.device import device_index
from nas_core.errors import ConfigError, unknown_choice
from nas_core.latency.by_graph.dataset.export import input_names, outputs_of
from nas_core.latency.protocol import TimingConfig, timed_conditions
from nas_core.optional import require
from nas_core.precision import half_type

RUNTIMES = ("onnxruntime", "torch")


class NetworkWorkload:
    """Network in a runtime, with inputs and outputs on the device.

    Args:
        run: function that runs one pass.
        outputs: function that runs one pass and returns the outputs.
        modules: modules that must be in evaluation mode.
    """

    at_a_time = 1
    """Number of passes timed together."""

    def __init__(
        self,
        run: Callable[[], Any],
        outputs: Callable[[], list[NDArray[np.float32]]],
        modules: Sequence[nn.Module] = (),
    ) -> None:
        self.run, self.outputs, self.modules = run, outputs, modules

    @property
    def components(self) -> Mapping[str, Callable[[], object]]:
        return {"network": self._passes}

    def convert(self, dtype: torch.dtype) -> None:
        """Do nothing: :func:`torch_workload` sets the precision."""

    def _passes(self) -> None:
        for _ in range(self.at_a_time):
            self.run()


def torch_workload(network: nn.Module, inputs: Sequence[Tensor], timing: TimingConfig) -> NetworkWorkload:
    """Return a workload that runs a network in torch, without compilation."""
    half = half_type(timing.precision)
    network.to(timing.device, half)
    run = functools.partial(network, *(x.to(timing.device, half if x.is_floating_point() else None) for x in inputs))

    def outputs() -> list[NDArray[np.float32]]:
        with timed_conditions(timing):
            return [output.float().cpu().numpy() for output in outputs_of(run())]

    return NetworkWorkload(run, outputs, [network])


def onnx_workload(content: bytes, inputs: Sequence[Tensor], timing: TimingConfig) -> NetworkWorkload:
    """Return a workload that runs an ONNX model, given as bytes, in onnxruntime with all optimisations."""
    runtime = require("onnxruntime", "measuring in onnxruntime", "onnx")
    device, index = torch.device(timing.device).type, device_index(timing.device)
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = timing.threads, 1
    options.log_severity_level = 3  # errors; its warnings are about optimisations
    provider = f"{device.upper()}ExecutionProvider"
    session = runtime.InferenceSession(content, options, providers=[(provider, provider_options(timing))])
    # onnxruntime drops a provider whose libraries are missing with no more than a line in the log.
    if session.get_providers()[:1] != [provider]:
        raise ConfigError(
            f"onnxruntime cannot use {provider} here; install onnxruntime-gpu in place of onnxruntime for CUDA, or"
            " give --device cpu or --set runtimes=torch"
        )
    session.disable_fallback()
    binding = session.io_binding()
    by_name = dict(zip(input_names(len(inputs)), inputs, strict=True))
    for node in session.get_inputs():  # without those that the exporter found unused
        value = runtime.OrtValue.ortvalue_from_numpy(by_name[node.name].cpu().numpy(), device, index)
        binding.bind_ortvalue_input(node.name, value)
    for output in session.get_outputs():
        binding.bind_output(output.name, device, index)

    def run() -> None:
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()

    def outputs() -> list[NDArray[np.float32]]:
        run()
        return [output.astype(np.float32) for output in binding.copy_outputs_to_cpu()]

    return NetworkWorkload(run, outputs)


def workload(
    runtime: str, network: nn.Module, inputs: Sequence[Tensor], content: bytes, timing: TimingConfig
) -> NetworkWorkload:
    if runtime == "torch":
        return torch_workload(network, inputs, timing)
    return onnx_workload(content, inputs, timing)


def provider_options(timing: TimingConfig) -> dict[str, str]:
    if torch.device(timing.device).type != "cuda":
        return {}
    return {"device_id": str(device_index(timing.device)), "use_tf32": "1" if timing.precision == "tf32" else "0"}


def check_runtimes(runtimes: Sequence[str], timing: TimingConfig) -> dict[str, Any]:
    """Raise a ConfigError for an unsupported runtime; return the version of onnxruntime if it is one of them."""
    for name in runtimes:
        if name not in RUNTIMES:
            raise unknown_choice("runtime", name, RUNTIMES)
    if "onnxruntime" not in runtimes:
        return {}
    if half_type(timing.precision) is not None or timing.clock == "device":
        raise ConfigError(
            f"onnxruntime does not support precision {timing.precision} with clock {timing.clock}; give precision fp32"
            " or tf32 and clock wall or cpu, or --set runtimes=torch"
        )
    return {"onnxruntime": str(require("onnxruntime", "measuring in onnxruntime", "onnx").__version__)}
