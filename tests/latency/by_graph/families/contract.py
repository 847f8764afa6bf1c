"""What every family of networks must do."""

from __future__ import annotations

import json

import numpy as np
import torch

from nas_core.graph.onnx.reader import read_onnx
from nas_core.latency.by_graph.dataset.export import calibrate, exported, outputs_of, without_weights
from nas_core.latency.by_graph.families.family import Family

SMALL_FILE = 120_000
HALF_READ = ("encoder", "translation")
"""Families whose networks have a decoder too, or an encoder, that the exported part does not read."""


def check_family(family: Family, samples: int = 2) -> None:
    """The samples are plain data, differ, compute ordinary numbers, and are read with all their operators."""
    drawn = [family.sample(rng) for rng in [np.random.default_rng(5)] for _ in range(samples)]
    repeated = [family.sample(rng) for rng in [np.random.default_rng(5)] for _ in range(samples)]
    assert drawn == repeated and json.loads(json.dumps(drawn)) == drawn
    assert len({json.dumps(settings) for settings in drawn}) == samples
    for settings in drawn:
        before = torch.get_rng_state()
        network, inputs = family.network(settings)
        assert not any(module.training for module in network.modules())
        outputs = calibrate(network, inputs)
        assert all(1e-3 < output.float().abs().max() < 1e3 for output in outputs), settings
        torch.testing.assert_close(outputs_of(network(*inputs)), outputs)
        same, same_inputs = family.network(settings)
        torch.testing.assert_close(calibrate(same, same_inputs), outputs)
        assert torch.equal(torch.get_rng_state(), before), "the caller's draws are untouched"
        light = without_weights(exported(network, inputs))
        read = read_onnx(light)
        assert len(light) < SMALL_FILE and not read.unknown, (len(light), read.unknown)
        assert read.flops_g > 1e-3
        params = sum(p.numel() for p in network.parameters()) / 1e6
        assert read.params_m < 1.2 * params + 0.1 and (read.params_m > 0.8 * params or family.name in HALF_READ)
