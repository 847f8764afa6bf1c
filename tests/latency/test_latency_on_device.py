"""The latency clock on any device: walls and events, in each precision, for two kinds of network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from nas_core.errors import ConfigError
from nas_core.latency import TimingConfig, measure
from nas_core.latency.protocol import time_passes_ms, timed_conditions
from nas_core.models.image.workload import ImageWorkload, ImageWorkloadConfig
from nas_core.models.translation.workload import TranslationWorkload, TranslationWorkloadConfig
from nas_core.models.workload import OnePassWorkload
from nas_core.precision import half_type
from tests.devices import PRECISIONS, close_in
from tests.search.devices.device_host import IMAGES, TRANSLATION

WORDS = TranslationWorkloadConfig(source_vocab=20, target_vocab=24, source_length=4, target_length=3, beam=2)
PICTURES = ImageWorkloadConfig(batch=2, classes=4)
SHORT: dict[str, Any] = {"warmup": 1, "repeats": 3}
CLOCKS = ("wall", "device")


def timing(device: str, precision: str = "fp32", clock: str = "wall") -> TimingConfig:
    """Settings, or a skip where this device has no such clock or precision."""
    try:
        return TimingConfig(device=device, precision=precision, clock=clock, **SHORT).checked_here()
    except ConfigError as error:
        pytest.skip(str(error))


def translation(device: str) -> TranslationWorkload:
    return TranslationWorkload(TRANSLATION, TRANSLATION.largest(), WORDS, device)


def image(device: str) -> ImageWorkload:
    return ImageWorkload(IMAGES, IMAGES.largest(), PICTURES, device)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("make", [translation, image])
def test_every_clock_times_every_precision(make: Callable[..., Any], device: str, precision: str, clock: str) -> None:
    config = timing(device, precision, clock)
    result = measure(make(device), make(device), config)
    assert set(result.components_ms) == ({"encoder", "decoder"} if make is translation else {"network"})
    assert all(0 < value < 1e4 for value in result.components_ms.values())
    assert 1 / 20 < result.relative < 20  # against itself


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("make", [translation, image])
def test_a_timed_pass_computes_the_network(make: Callable[..., Any], device: str, precision: str) -> None:
    """In half precision in the type of its weights, like the CPU."""
    config = timing(device, precision)
    workload = make(device)
    time_passes_ms(workload, config)
    with timed_conditions(config):
        *_, last = [part() for part in workload.components.values()]
        *_, expected = [part() for part in make("cpu").components.values()]
    assert isinstance(last, torch.Tensor)
    assert last.dtype == (half_type(precision) or torch.float32) and last.device.type == device
    close_in(precision, last, expected, times=3)


def test_more_work_takes_longer_on_every_clock(device: str) -> None:
    """A launch alone ends at once: kernels are waited for."""
    side = 4096 if device == "cuda" else 512  # a GPU that other tests use as well changes between them in a millisecond
    matrix = torch.randn(side, side, device=device) / side**0.5

    class Product(nn.Module):
        def __init__(self, times: int) -> None:
            super().__init__()
            self.times = times

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(self.times):
                x = x @ matrix
            return x

    few, many = (OnePassWorkload(Product(times), [matrix], device) for times in (4, 80))
    for clock in CLOCKS if device == "cuda" else ("wall",):
        assert measure(many, few, timing(device, clock=clock)).relative > 3
