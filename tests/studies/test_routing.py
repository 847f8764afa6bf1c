"""Distances between mixtures, against values computed by hand and by scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from torch import nn

from nas_core.layers.mos import LayerRouter, MoSConfig, NeuronRouter
from nas_core.space import Architecture
from nas_core.studies.routing import mixture_distance, mixtures_of, shannon_distance


def test_the_distance_is_zero_of_equal_and_largest_of_disjoint_mixtures() -> None:
    assert float(shannon_distance([0.3, 0.7], [0.3, 0.7])) == 0.0
    assert float(shannon_distance([1.0, 0.0], [0.0, 1.0])) == pytest.approx(math.sqrt(math.log(2)))


def test_the_distance_of_two_given_mixtures_is_that_of_the_formula() -> None:
    p, q = (0.9, 0.1), (0.4, 0.6)
    m = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    kl = [sum(a * math.log(a / c) for a, c in zip(one, m, strict=True)) for one in (p, q)]
    assert float(shannon_distance(p, q)) == pytest.approx(math.sqrt(sum(kl) / 2))
    assert float(shannon_distance(p, q)) == pytest.approx(float(jensenshannon(p, q)))


class Network(nn.Module):
    """A router of each kind, the second of which only larger architectures use."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        config = MoSConfig(kind="neuron", experts=3, router_hidden=4)
        self.layer, self.neuron = LayerRouter(1, config, 6), NeuronRouter(1, config, 6)

    def select(self, architecture: Architecture) -> None:
        width = architecture.number("width")
        encoding = torch.tensor([width / 6.0])
        self.layer(encoding, width)
        if width > 2:
            self.neuron(encoding, width)


def test_mixtures_are_what_the_routers_gave_and_leave_no_hook() -> None:
    network = Network().eval()
    architecture = mixtures_of(network, Architecture({"width": 4}))
    assert {name: values.shape for name, values in architecture.items()} == {"layer": (1, 3), "neuron": (4, 3)}
    np.testing.assert_allclose(architecture["neuron"].sum(-1), 1.0, atol=1e-6)
    assert not any(module._forward_hooks for module in network.modules())  # private: torch tells of hooks nowhere else


def test_rows_and_routers_that_one_lacks_are_left_out() -> None:
    network = Network().eval()
    small, middle, large = (mixtures_of(network, Architecture({"width": width})) for width in (2, 4, 6))
    assert list(mixture_distance(small, large)) == ["layer"]
    by_hand = shannon_distance(middle["neuron"], large["neuron"][:4]).mean()
    assert mixture_distance(middle, large)["neuron"] == pytest.approx(float(by_hand))
