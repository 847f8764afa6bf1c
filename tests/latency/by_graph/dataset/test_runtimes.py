"""Networks with several inputs and outputs of any type, in both runtimes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.latency import TimingConfig
from nas_core.latency.by_graph.dataset import collect_networks, runtimes
from nas_core.latency.by_graph.dataset.export import calibrate, exported
from nas_core.latency.by_graph.dataset.runtimes import RUNTIMES, check_runtimes, provider_options, workload
from nas_core.latency.by_graph.families import Family
from tests.latency.by_graph.dataset.tiny import CONFIG, TIMING, sample

pytestmark = pytest.mark.onnx


class _Step(nn.Module):
    """A table, a mask, a position without dimensions, a cache, and an input that nothing reads."""

    def __init__(self, differs: bool = False) -> None:
        super().__init__()
        self.table, self.differs = nn.Embedding(50, 8), differs

    def forward(self, tokens: Tensor, unread: Tensor, mask: Tensor, position: Tensor, past: Tensor) -> Any:
        x = self.table(tokens).masked_fill(~mask[:, None], 0.0)
        after = torch.cat([past, x + position], 0)
        return x.sum(0), (2 * after if self.differs and torch.onnx.is_in_onnx_export() else after), mask, tokens + 1


def inputs() -> tuple[Tensor, ...]:
    mask = torch.tensor([True, False, True])
    return torch.tensor([3, 49, 7]), torch.randn(2), mask, torch.tensor(5), torch.randn(1, 8)


def test_all_inputs_and_outputs_pass_through_both_runtimes() -> None:
    import onnx

    network, given = _Step().eval().requires_grad_(False), inputs()
    wanted = calibrate(network, given)
    content = exported(network, given)
    graph = onnx.load_model_from_string(content).graph
    assert graph.output[0].name == "output" and len(graph.output) == 4
    for name in RUNTIMES:
        found = workload(name, network, given, content, TIMING).outputs()
        assert [output.shape for output in found] == [(8,), (4, 8), (3,), (3,)]
        for output, expected in zip(found, wanted, strict=True):
            assert output.dtype == np.float32
            np.testing.assert_allclose(output, expected.float().numpy(), rtol=1e-6)


@pytest.mark.parametrize("differs", [False, True])
def test_every_output_is_compared(differs: bool, tmp_path: Any) -> None:
    family = Family("step", "", sample, lambda settings: (_Step(differs), inputs()))
    (row,) = collect_networks(tmp_path / "set", [family], 1, TIMING, CONFIG, progress=False).rows
    assert row.get("error") == ("the output in torch differs from that in onnxruntime" if differs else None)


def test_every_output_must_be_finite(tmp_path: Any) -> None:
    class Infinite(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x, x / 0

    family = Family("infinite", "", sample, lambda settings: (Infinite(), (torch.ones(3),)))
    (row,) = collect_networks(tmp_path / "set", [family], 1, TIMING, CONFIG, progress=False).rows
    assert row["error"] == "the output is not finite"


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        ({"device": "cuda:1"}, {"device_id": "1", "use_tf32": "0"}),
        ({"device": "cuda"}, {"device_id": "0", "use_tf32": "0"}),
        ({"device": "cuda:2", "precision": "tf32"}, {"device_id": "2", "use_tf32": "1"}),
    ],
)
def test_the_provider_is_told_the_device_and_the_precision(settings: dict[str, Any], options: dict[str, str]) -> None:
    assert provider_options(TimingConfig(**settings)) == options


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"precision": "bf16"}, "precision bf16 is for networks in torch"),
        ({"device": "cuda", "cuda_graphs": True}, "cuda_graphs is for networks in torch"),
        ({"device": "cuda", "clock": "device"}, "clock device is for networks in torch"),
    ],
)
def test_what_onnxruntime_is_not_measured_in(settings: dict[str, Any], said: str) -> None:
    timing = TimingConfig(**settings)
    with pytest.raises(ConfigError, match=said):
        check_runtimes(RUNTIMES, timing)
    assert check_runtimes(["torch"], timing) == {}


@pytest.mark.filterwarnings("ignore:Specified provider")
def test_onnxruntime_on_another_provider_than_asked_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on with the CPU where the provider's libraries are missing."""
    network, given = _Step().eval().requires_grad_(False), inputs()
    content = exported(network, given)
    monkeypatch.setitem(runtimes._PROVIDERS, "cpu", "AbsentExecutionProvider")  # private: nobody has it
    with pytest.raises(ConfigError, match="onnxruntime cannot use AbsentExecutionProvider here"):
        workload("onnxruntime", network, given, content, TIMING)
