"""Networks in torch and in onnxruntime on any device: the same numbers, where they were asked to be computed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.latency import TimingConfig
from nas_core.latency.by_graph.dataset.export import calibrate, exported
from nas_core.latency.by_graph.dataset.runtimes import check_runtimes, torch_workload, workload
from nas_core.latency.by_graph.families.family import Family
from nas_core.latency.by_graph.families.registry import chosen_families
from nas_core.latency.protocol import time_passes_ms
from tests.devices import PRECISIONS, close_in


class Network(nn.Module):
    """Convolution, norm and matrix product, of an image and of a number that is none of them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.head = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.Linear(16 * 64, 10)
        self.table = nn.Embedding(5, 10)

    def forward(self, image: Tensor, index: Tensor) -> Tensor:
        return self.head(self.norm(self.stem(image)).relu().flatten(1)) + self.table(index)


def made() -> tuple[nn.Module, tuple[Tensor, ...], Tensor]:
    torch.manual_seed(0)
    network, inputs = Network().eval().requires_grad_(False), (torch.randn(2, 3, 8, 8), torch.tensor([1, 4]))
    (expected,) = calibrate(network, inputs)
    return network, inputs, expected


def timing(**settings: object) -> TimingConfig:
    try:
        return TimingConfig(warmup=1, repeats=2, **settings).checked_here()  # type: ignore[arg-type]
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_torch(device: str, precision: str) -> None:
    network, inputs, expected = made()
    config = timing(device=device, precision=precision)
    work = torch_workload(network, inputs, config)
    (result,) = work.outputs()
    close_in(precision, torch.from_numpy(result), expected, times=3)
    work.at_a_time = 3
    assert min(time_passes_ms(work, config)) > 0


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_onnxruntime(device: str, precision: str) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnx", reason="onnx is not installed")
    config = timing(device=device, precision=precision)
    if device == "cuda" and "CUDAExecutionProvider" not in runtime.get_available_providers():
        pytest.skip("this onnxruntime has no CUDA: onnxruntime-gpu is another package")
    assert check_runtimes(["onnxruntime"], config) == {"onnxruntime": runtime.__version__}
    network, inputs, expected = made()
    work = workload("onnxruntime", network, inputs, exported(network, inputs), config)
    (result,) = work.outputs()
    close_in(precision, torch.from_numpy(result), expected, times=3)
    assert min(time_passes_ms(work, config)) > 0


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", ["encoder", "translation"])
def test_networks_that_hold_slices_of_their_weights_are_moved_whole(name: str, device: str, precision: str) -> None:
    (family,) = chosen_families(name)
    assert isinstance(family, Family)
    settings = family.sample(np.random.default_rng(0))
    network, inputs = family.network(settings)
    with torch.no_grad():
        expected = network(*inputs)
    config = timing(device=device, precision=precision)
    outputs = torch_workload(network, inputs, config).outputs()
    first = expected if isinstance(expected, Tensor) else expected[0]
    close_in(precision, torch.from_numpy(outputs[0]), first, times=3)
