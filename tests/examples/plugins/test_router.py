"""A third party's router: plugged in by its entry point it meets the contract, trains in a supernet, is extracted."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from nas_core.layers import ROUTERS, MoSConfig, Router
from nas_core.layers.mos import mixtures
from nas_core.models.translation import TranslationConfig, TranslationNet
from tests.contracts.router import RouterContract
from tests.models.translation.tiny import ARCHITECTURES, SOURCE_VOCAB, SPACE, VOCAB, close, extract, sentences
from tests.toys import plug_in


@pytest.fixture(autouse=True)
def plugged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(tmp_path / "site", monkeypatch, "nas_ext.routers", "blocks", "examples.plugins.router:BlockRouter")


class TestBlocks(RouterContract):
    kind = "blocks"


def test_it_is_a_choice_beside_the_projects_own() -> None:
    assert mixtures() == ["none", "layer", "neuron", "blocks"]


def test_a_supernet_trains_with_it_and_its_subnets_are_extracted() -> None:
    torch.manual_seed(0)
    settings = TranslationConfig(mos=MoSConfig(kind="blocks", router_hidden=8))
    net = TranslationNet(SPACE, SOURCE_VOCAB, VOCAB, settings)
    routers = [module for module in net.modules() if isinstance(module, Router)]
    assert {type(router) for router in routers} == {ROUTERS.get("blocks")}
    source, target = sentences(5, 7, 2), sentences(6, 4, 3, seed=1)
    optimizer, losses = torch.optim.Adam(net.parameters(), 0.01), []
    for _ in range(8):
        logits = net(net.select(ARCHITECTURES["mixed"]), source, target)
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    assert all(parameter.grad is not None for router in routers[:2] for parameter in router.parameters())
    net.eval()
    for name in ("mixed", "smallest"):
        static = extract(net, ARCHITECTURES[name]).eval()
        assert not any(isinstance(module, Router) for module in static.modules())
        want = net(net.select(ARCHITECTURES[name]), source, target)
        close(static(static.select(static.space.largest()), source, target), want)
