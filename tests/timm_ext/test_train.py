"""Training supernets and static networks: what is trained, what is written, and continuing a run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nas_core.files.reading import read_json
from nas_core.supernet.sampling import sandwich
from tests.timm_ext.running import SPACE, config, train
from tests.timm_ext.trained_by_workers import plain_images
from timm_ext import load_model
from timm_ext.checkpoint import read_checkpoint
from timm_ext.options import TrainConfig, parse
from timm_ext.train import Trainer, main

ROUGH = {
    "mixup": 0.3, "cutmix": 0.3, "reprob": 0.3, "color_jitter": 0.2, "aa": "rand-m3", "drop": 0.1, "drop_path": 0.1,
}  # fmt: skip
MIXED = {"mos": "neuron", "mos_router_hidden": 8, "updates": 2, "sampling": "sandwich", "mos_experts": 3}


def weights(folder: Path, key: str = "state_dict") -> dict[str, Tensor]:
    state: dict[str, Tensor] = read_checkpoint(folder / "last.pt")[key]
    return state


def test_options_become_settings() -> None:
    needed = ["--data", "d", "--model", "m", "--output", "o"]
    parsed = parse([*needed, "--lr", "2e-3", "--decay-all", "--opt-betas", "0.9", "0.998", "--torchcompile"])
    expected = {"lr": 2e-3, "decay_all": True, "opt_betas": (0.9, 0.998), "torchcompile": "inductor"}
    assert parsed == TrainConfig(data="d", model="m", output="o", **expected)


@pytest.mark.parametrize(
    "changes",
    [
        {"updates": 5, "warmup_updates": 2, "opt_betas": (0.5, 0.6), "decay_all": True},
        {"ema": 0.9, "mos": "layer", "clip_grad": 1.0, **ROUGH},
    ],
    ids=["updates", "epochs"],
)
def test_an_interrupted_run_continues_with_the_same_results(
    npz: Path, tmp_path: Path, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    full = train(npz, tmp_path / "whole", **changes)
    trainer = Trainer(config(npz, tmp_path / "parts", **changes))

    def interrupted(images: Tensor, labels: Tensor, update: int, *arguments: Any) -> Any:
        if update == 4:
            raise KeyboardInterrupt
        return Trainer.train_step(trainer, images, labels, update, *arguments)

    monkeypatch.setattr(trainer, "train_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    torch.rand(7)  # a new process has other random states
    repeated = train(npz, tmp_path / "parts", **changes)
    assert repeated.history == full.history == read_json(tmp_path / "parts" / "metrics.json")
    for key in ("state_dict", "state_dict_ema") if "ema" in changes else ("state_dict",):
        parts = weights(tmp_path / "parts", key)
        assert all(torch.equal(tensor, parts[name]) for name, tensor in weights(tmp_path / "whole", key).items())


def test_spos_trains_the_drawn_architecture_and_sandwich_the_ends_too(npz: Path, tmp_path: Path) -> None:
    spos = Trainer(config(npz, tmp_path / "spos"))
    assert spos.architectures_of(4) == [spos.model.draw(4)]
    rule = Trainer(config(npz, tmp_path / "sandwich", sampling="sandwich"))
    assert rule.architectures_of(4) == list(sandwich(SPACE, rule.model.draw(4)).values())
    images, labels = torch.randn(6, 3, 32, 32), torch.tensor([0, 1] * 3)
    rule.model.train()
    rule.train_step(images, labels, 0)
    gradient = rule.model.net.patch_embed.weight.grad.clone()
    fresh = Trainer(config(npz, tmp_path / "sandwich", sampling="sandwich")).model.train()
    loss = torch.zeros(())
    for architecture in sandwich(SPACE, fresh.draw(0)).values():
        with fresh.use_architecture(architecture):
            loss = loss + torch.nn.functional.cross_entropy(fresh(images), labels) / 3
    loss.backward()
    torch.testing.assert_close(gradient, fresh.net.patch_embed.weight.grad)


def test_a_supernet_learns_and_reports_its_subnets(npz: Path, tmp_path: Path) -> None:
    trainer = train(npz, tmp_path / "run", sampling="sandwich")
    last = trainer.history[-1]
    assert set(last["subnets"]) == {"smallest", "largest", "random1", "random2"}
    assert last["top1"] > 90 and last["loss"] < trainer.history[0]["loss"]
    assert load_model(tmp_path / "run" / "best.pt").space == SPACE
    assert read_checkpoint(tmp_path / "run" / "last.pt")["updates"] == 6


def test_a_static_network_from_a_folder(folder: Path, tmp_path: Path) -> None:
    SPACE.smallest().save(tmp_path / "A.json")
    changes = {"val_data": str(folder), "subnet": str(tmp_path / "A.json"), "batch_size": 8, "img_size": 24}
    trainer = train(folder, tmp_path / "run", precision="bf16", **changes)
    assert trainer.model.architecture == SPACE.smallest() and "subnets" not in trainer.history[-1]
    model = load_model(tmp_path / "run" / "last.pt")
    assert model.net.grid == (3, 3) and model(torch.randn(2, 3, 24, 24)).shape == (2, 2)


def rates(trainer: Trainer, count: int) -> list[float]:
    values = []
    for update in range(count):
        trainer.schedule.step_update(update)
        values.append(trainer.optimizer.param_groups[0]["lr"])
    return values


def test_schedules_by_epochs_and_by_updates(npz: Path, tmp_path: Path) -> None:
    settings = {"lr": 0.1, "min_lr": 0.001, "warmup_lr": 0.01}
    by_epochs = rates(Trainer(config(npz, tmp_path / "run", epochs=6, warmup_epochs=2, **settings)), 18)
    assert by_epochs[0] == pytest.approx(0.01) and max(by_epochs) == pytest.approx(0.1, rel=0.25)
    assert by_epochs[:6] == sorted(by_epochs[:6]) and by_epochs[6:] == sorted(by_epochs[6:], reverse=True)
    trainer = Trainer(config(npz, tmp_path / "run", updates=5, warmup_updates=2, opt_betas=(0.9, 0.998), **settings))
    fall = [0.001 + 0.099 * (1 + math.cos(math.pi * step / 3)) / 2 for step in range(3)]  # as fairseq's cosine
    assert rates(trainer, 5) == pytest.approx([0.01, 0.055, *fall])
    assert (trainer.epochs, trainer.updates) == (2, 5)  # epochs of 3 and of 2 updates
    assert {group["betas"] for group in trainer.optimizer.param_groups} == {(0.9, 0.998)}
    for everything, groups in ((False, {0.0, 0.05}), (True, {0.05})):
        optimizer = Trainer(config(npz, tmp_path / "run", decay_all=everything)).optimizer
        assert {group["weight_decay"] for group in optimizer.param_groups} == groups


def test_an_update_of_several_passes_is_that_of_one_batch(npz: Path, tmp_path: Path) -> None:
    settings = {"opt": "sgd", "sampling": "sandwich", "epochs": 1, "valid_random": 0}
    with plain_images():
        full = train(npz, tmp_path / "whole", **settings)
        parts = train(npz, tmp_path / "parts", **settings, batch_size=4, grad_accum_steps=4)
        left = train(npz, tmp_path / "left", **settings, batch_size=8, grad_accum_steps=4)  # of 4 passes and of 2
    assert (parts.per_epoch, left.per_epoch, left.updates, int(left.model.updates)) == (3, 2, 2, 1)
    losses = [[record["train_loss"] for record in trainer.history] for trainer in (parts, full)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    for name, tensor in weights(tmp_path / "whole").items():
        torch.testing.assert_close(weights(tmp_path / "parts")[name], tensor, atol=1e-5, rtol=1e-4)


def test_the_command(npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    SPACE.smallest().save(tmp_path / "A.json")
    arguments = ["--data", npz, "--val-count", 24, "--model", "vit_cifar10_small", "--subnet", tmp_path / "A.json",
                 "--output", tmp_path / "run", "--epochs", 1, "--batch-size", 16]  # fmt: skip
    assert main(list(map(str, arguments))) == 0
    assert capsys.readouterr().out.startswith("best epoch 1: train loss ")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {"best.pt", "last.pt", "metrics.json", "settings.json"}
