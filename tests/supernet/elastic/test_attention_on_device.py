"""Other kinds of attention are fitted on any device as on the CPU."""

from __future__ import annotations

import torch

from nas_core.supernet.elastic.attention import FitConfig, fit
from tests.supernet.elastic.reversing import SEVERAL, batches, loss, several


def test_fitting_on_a_device_comes_as_near_as_on_the_cpu(device: str) -> None:
    found = []
    for place in ("cpu", device):
        net = several().to(place)
        data = [(source.to(place), read.to(place), wanted.to(place)) for source, read, wanted in batches(6, 7)]
        found.append(
            fit(net, SEVERAL, data, lambda subnet, batch, net=net: loss(net, subnet, batch), FitConfig(steps=8))
        )
        assert all(parameter.device == torch.device(place) for parameter in net.parameters())
    for here, there in zip(*found, strict=True):
        assert here[:3] == there[:3]
        assert abs(here.before - there.before) <= 1e-3 * here.before + 1e-6
        assert there.after <= there.solved <= there.before
        assert abs(here.after - there.after) <= 0.1 * here.after + 1e-6
