"""Other kinds of attention are fitted on any device as on the CPU."""

from __future__ import annotations

import torch

from nas_core.supernet.elastic.attention import FitConfig, fit
from tests.supernet.elastic.reversing import SEVERAL, batches, loss, several


def test_fitting_on_a_device_comes_as_near_as_on_the_cpu(device: str) -> None:
    results = []
    for place in ("cpu", device):
        net = several().to(place)
        data = [(source.to(place), read.to(place), wanted.to(place)) for source, read, wanted in batches(6, 7)]
        results.append(
            fit(net, SEVERAL, data, lambda subnet, batch, net=net: loss(net, subnet, batch), FitConfig(steps=8))
        )
        assert all(parameter.device == torch.device(place) for parameter in net.parameters())
    for on_cpu, on_device in zip(*results, strict=True):
        assert on_cpu[:3] == on_device[:3]
        assert abs(on_cpu.before - on_device.before) <= 1e-3 * on_cpu.before + 1e-6
        assert on_device.final <= on_device.closed_form <= on_device.before
        assert abs(on_cpu.final - on_device.final) <= 0.1 * on_cpu.final + 1e-6
