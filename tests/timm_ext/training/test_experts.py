"""How the experts of image supernets begin, their rank, and the term that keeps them apart."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from nas_core.errors import ConfigError
from nas_core.layers.mos import expert_layers, experts_alike
from tests.timm_ext.running import SPACE, config, train
from timm_ext.checkpoint import load_model
from timm_ext.host import HOST
from timm_ext.train import Trainer

MIXED = {"mos": "neuron", "mos_router_hidden": 8, "updates": 2, "sampling": "sandwich"}


def test_experts_of_low_rank_are_trained_kept_and_extracted(npz: Path, tmp_path: Path) -> None:
    train(npz, tmp_path / "run", **MIXED, mos_rank=2, mos_experts=3, mos_apart=0.1, teacher="largest")
    model, path = load_model(tmp_path / "run" / "last.pt").eval(), tmp_path / "small.pt"
    layers = expert_layers(model)
    assert {layer.rank for layer in layers} == {2} and all(layer.left.any() for layer in layers)
    HOST.open(tmp_path / "run" / "last.pt").extract(SPACE.smallest(), path)
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad(), model.using(SPACE.smallest()):
        torch.testing.assert_close(load_model(path).eval()(images), model(images))
    with pytest.raises(ConfigError, match="holds a run with --mos-rank 2, now 0"):
        train(npz, tmp_path / "run", **MIXED, mos_experts=3, mos_apart=0.1, teacher="largest")


@pytest.mark.parametrize("parts", [1, 2])
def test_the_term_is_added_once_for_an_update(npz: Path, tmp_path: Path, parts: int) -> None:
    """The gradient is that without the term, and the term's own."""
    changes = {**MIXED, "mos_experts": 3, "grad_accum_steps": parts}
    found = []
    for weight in (0.0, 0.5):
        trainer = Trainer(config(npz, tmp_path / str(weight), mos_apart=weight, **changes))
        trainer.optimizer.step = lambda *_, **__: None  # type: ignore[method-assign]  gradients are looked at
        for images, labels, update, part, count in trainer.passes.epoch(0, 1):
            trainer.model.train()
            losses = trainer.train_step(images, labels, update, part, count)
        gradients = {name: each.grad for name, each in trainer.model.named_parameters() if each.grad is not None}
        found.append((gradients, torch.stack(losses).sum(), trainer.model))
    (without, loss, model), (got, other, _) = found
    model.zero_grad()
    (0.5 * experts_alike(model)).backward()
    for name, parameter in model.named_parameters():
        if name in got:
            term = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            torch.testing.assert_close(got[name], without.get(name, 0) + term, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(loss, other)


def test_experts_begin_as_they_are_told_to(npz: Path, tmp_path: Path) -> None:
    alike = {}
    for start in ("independent", "equal", "near"):
        model = Trainer(config(npz, tmp_path / start, **MIXED, mos_start=start)).model
        alike[start] = float(experts_alike(model).detach())
    assert alike["independent"] < 0.3 and alike["equal"] > 0.999999 and 0.99 < alike["near"] < 0.9999


def test_what_cannot_work_is_refused(npz: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no layers of several experts"):
        Trainer(config(npz, tmp_path / "run", mos="none", mos_apart=1.0))
    with pytest.raises(ConfigError, match="--mos-start of a network without experts"):
        Trainer(config(npz, tmp_path / "run", mos="none", mos_start="near"))
