"""A third party's gene: searched by its name alone, and what it decides is in the weights that both networks use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from examples.plugins.gene import GENE, FewBitsNet, few_bits
from nas_core.models import params_m
from nas_core.search import Constraint, EvolutionConfig, HATEvolution, search
from nas_core.space import Architecture, SearchSpace, load_space, save_space
from tests.contracts.space import SpaceContract
from tests.models.translation.tiny import close, sentences

SOURCE, TARGET = sentences(5, 7, 2), sentences(6, 4, 3, seed=1)


class TestSpace(SpaceContract):
    def make(self) -> SearchSpace:
        return few_bits()


@pytest.fixture(scope="module")
def net() -> FewBitsNet:
    """A supernet after a few updates, each with another architecture."""
    torch.manual_seed(0)
    net, rng = FewBitsNet(few_bits(), 23, 19), np.random.default_rng(0)
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(30):
        optimizer.zero_grad()
        loss(net, net.space.sample(rng)).backward()
        optimizer.step()
    return net.eval()


def loss(net: FewBitsNet, architecture: Architecture) -> torch.Tensor:
    logits = net(net.select(architecture), SOURCE, TARGET)
    return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), TARGET[:, 1:].flatten())


def with_bits(architecture: Architecture, bits: int) -> Architecture:
    return Architecture({**architecture, GENE: (bits,) * architecture.number("encoder.layers")})


def test_the_gene_decides_what_is_computed_and_learns(net: FewBitsNet) -> None:
    largest = net.space.largest()
    few = net.select(with_bits(largest, 2)).encoder_layers[0].ffn.fc1.weight
    many = net.select(with_bits(largest, 8)).encoder_layers[0].ffn.fc1.weight
    assert len(few.unique()) <= 3 and 50 < len(many.unique()) <= 255
    few.sum().backward()
    assert net.encoder_layers[0].ffn.fc1.weight.grad is not None


def test_a_search_finds_how_few_bits_do(net: FewBitsNet, tmp_path: Path) -> None:
    def evaluate(architecture: Architecture) -> dict[str, float]:
        with torch.no_grad():
            return {"loss": loss(net, architecture).item(), "bits": float(sum(architecture.numbers(GENE)))}

    limit = Constraint.per_architecture("params_m", params_m(net.space.largest()), net.space, params_m)
    strategy = HATEvolution(net.space, [limit], EvolutionConfig(iterations=2, population=10))
    result = search({"few": strategy}, evaluate, tmp_path, objectives=["loss", "bits"], progress=False)
    assert {entry.metrics["bits"] for entry in result.archive} & {2.0, 4.0}
    save_space(net.space, tmp_path / "space.yml")
    assert load_space(tmp_path / "space.yml") == net.space


@pytest.mark.parametrize("bits", [2, 8])
def test_the_static_network_is_the_subnet(net: FewBitsNet, bits: int) -> None:
    architecture = with_bits(net.space.largest(), bits)
    static = FewBitsNet(SearchSpace.of(architecture, like=net.space), 23, 19).eval()
    static.load_state_dict(net.static_state(architecture))
    close(static(static.select(architecture), SOURCE, TARGET), net(net.select(architecture), SOURCE, TARGET))
