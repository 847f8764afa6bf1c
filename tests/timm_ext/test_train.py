"""Training supernets and static networks: what is trained, what is written, and continuing a run."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nas_core.errors import CheckpointError, ConfigError, DataError, NasExtError, UnknownChoiceError
from nas_core.files import read_json
from nas_core.space import Architecture
from nas_core.supernet.sampling import sandwich
from tests.timm_ext.running import SPACE, config, train
from tests.timm_ext.trained_by_workers import plain_images
from timm_ext import load_model
from timm_ext.building import build_model
from timm_ext.checkpoint import read_checkpoint
from timm_ext.host import HOST
from timm_ext.train import Trainer, main

ROUGH = {
    "mixup": 0.3,
    "cutmix": 0.3,
    "reprob": 0.3,
    "color_jitter": 0.2,
    "aa": "rand-m3",
    "drop": 0.1,
    "drop_path": 0.1,
}


def weights(folder: Path, key: str = "state_dict") -> dict[str, Tensor]:
    state: dict[str, Tensor] = read_checkpoint(folder / "last.pt")[key]
    return state


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"updates": 5, "warmup_updates": 2, "opt_betas": (0.5, 0.6), "decay_all": True},
        {"ema": 0.9, "mos": "layer", "clip_grad": 1.0, "stability_architectures": 5, "stability_tau": 1.0, **ROUGH},
    ],
)
def test_an_interrupted_run_continues_as_if_nothing_had_happened(
    npz: Path, tmp_path: Path, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(npz, tmp_path / "whole", **changes)
    trainer = Trainer(config(npz, tmp_path / "parts", **changes))
    updates = 0

    def interrupted(*arguments: Any) -> float:
        nonlocal updates
        updates += 1
        if updates == 5:
            raise KeyboardInterrupt
        return Trainer.train_step(trainer, *arguments)

    monkeypatch.setattr(trainer, "train_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    torch.rand(7)  # a new process has other random states
    again = train(npz, tmp_path / "parts", **changes)
    assert again.history == whole.history
    for key in ("state_dict", "state_dict_ema") if "ema" in changes else ("state_dict",):
        parts = weights(tmp_path / "parts", key)
        assert all(torch.equal(tensor, parts[name]) for name, tensor in weights(tmp_path / "whole", key).items())
    assert read_json(tmp_path / "parts" / "metrics.json") == whole.history


def test_training_stops_when_the_ranking_of_subnets_is_stable(npz: Path, tmp_path: Path) -> None:
    ranked = {"stability_architectures": 12, "stability_tau": 0.01, "stability_patience": 50}
    never = train(npz, tmp_path / "never", **{**ranked, "stability_tau": 1.0}, epochs=4)
    taus = [record.get("stability_tau") for record in never.history]
    assert len(taus) == 4 and taus[0] is None
    stop = next(epoch for epoch, tau in enumerate(taus) if tau is not None and tau > 0.01)
    stopped = train(npz, tmp_path / "stopped", **ranked, epochs=4)
    assert stopped.history == never.history[: stop + 1] and stop < 3
    again = Trainer(config(npz, tmp_path / "stopped", **ranked, epochs=4))
    again.run()
    assert (again.epoch, again.history) == (stopped.epoch, stopped.history)  # it stays stopped
    with pytest.raises(ConfigError, match="one architecture"):
        alone = tmp_path / "alone.json"
        SPACE.smallest().save(alone)
        Trainer(config(npz, tmp_path / "static", subnet=str(alone), **ranked))


def test_spos_trains_the_drawn_architecture_and_sandwich_the_ends_too(npz: Path, tmp_path: Path) -> None:
    spos = Trainer(config(npz, tmp_path / "spos"))
    assert spos.architectures_of(4) == [spos.model.draw(4)]
    rule = Trainer(config(npz, tmp_path / "sandwich", sampling="sandwich"))
    assert rule.architectures_of(4) == list(sandwich(SPACE, rule.model.draw(4)).values())
    images, labels = torch.randn(6, 3, 32, 32), torch.tensor([0, 1] * 3)
    rule.model.train()
    rule.train_step(images, labels, 0)
    got = rule.model.net.patch_embed.weight.grad.clone()
    fresh = Trainer(config(npz, tmp_path / "sandwich", sampling="sandwich")).model.train()
    loss = torch.zeros(())
    for architecture in sandwich(SPACE, fresh.draw(0)).values():
        with fresh.using(architecture):
            loss = loss + torch.nn.functional.cross_entropy(fresh(images), labels) / 3
    loss.backward()
    torch.testing.assert_close(got, fresh.net.patch_embed.weight.grad)


def test_a_supernet_learns_and_reports_its_subnets(npz: Path, tmp_path: Path) -> None:
    trainer = train(npz, tmp_path / "run", epochs=4, sampling="sandwich")
    last = trainer.history[-1]
    assert set(last["subnets"]) == {"smallest", "largest", "random1", "random2"}
    assert last["top1"] > 90
    assert last["loss"] < trainer.history[0]["loss"]
    model = load_model(tmp_path / "run" / "best.pt")
    assert model.space == SPACE
    assert not model.training


def test_a_static_network_from_a_folder(folder: Path, tmp_path: Path) -> None:
    SPACE.smallest().save(tmp_path / "A.json")
    changes = {"val_data": str(folder), "subnet": str(tmp_path / "A.json"), "batch_size": 8, "img_size": 24}
    trainer = train(folder, tmp_path / "run", precision="bf16", grad_checkpointing=True, **changes)
    assert trainer.model.architecture == SPACE.smallest()
    assert "subnets" not in trainer.history[-1]
    model = load_model(tmp_path / "run" / "last.pt")
    assert model.net.grid == (3, 3)
    assert model(torch.randn(2, 3, 24, 24)).shape == (2, 2)


def test_training_goes_on_from_an_extracted_subnet(npz: Path, tmp_path: Path) -> None:
    supernet = train(npz, tmp_path / "supernet", epochs=1)
    HOST.open(tmp_path / "supernet" / "last.pt").extract(SPACE.smallest(), tmp_path / "subnet.safetensors")
    SPACE.smallest().save(tmp_path / "A.json")
    given = {"init": str(tmp_path / "subnet.safetensors"), "subnet": str(tmp_path / "A.json")}
    subnet = Trainer(config(npz, tmp_path / "run", **given)).model.eval()
    images = torch.randn(2, 3, 32, 32)
    with supernet.model.eval().using(SPACE.smallest()):
        torch.testing.assert_close(subnet(images), supernet.model(images), atol=1e-5, rtol=1e-5)
    with pytest.raises(CheckpointError, match="does not fit this network"):
        Trainer(config(npz, tmp_path / "run", init=given["init"]))


def test_rates_rise_and_fall(npz: Path, tmp_path: Path) -> None:
    trainer = Trainer(config(npz, tmp_path / "run", epochs=6, warmup_epochs=2, lr=0.1, min_lr=0.001, warmup_lr=0.01))
    rates = []
    for update in range(18):
        trainer.schedule.step_update(update)
        rates.append(trainer.optimizer.param_groups[0]["lr"])
    assert rates[0] == pytest.approx(0.01)
    assert rates[:6] == sorted(rates[:6])
    assert rates[6:] == sorted(rates[6:], reverse=True)
    assert max(rates) == pytest.approx(0.1, rel=0.25)


def test_training_by_updates(npz: Path, tmp_path: Path) -> None:
    given = {"updates": 5, "warmup_updates": 2, "lr": 0.1, "min_lr": 0.001, "warmup_lr": 0.01}
    trainer = Trainer(config(npz, tmp_path / "run", **given, opt_betas=(0.9, 0.998)))
    rates, update = [], trainer.train_step

    def noted(*arguments: Any) -> float:
        rates.append(trainer.optimizer.param_groups[0]["lr"])
        return update(*arguments)

    trainer.train_step = noted  # type: ignore[method-assign]
    trainer.run()
    rise = [0.01, 0.055]
    fall = [0.001 + 0.099 * (1 + math.cos(math.pi * step / 3)) / 2 for step in range(3)]  # as fairseq's cosine
    assert rates == pytest.approx([*rise, *fall])
    assert len(trainer.history) == 2  # epochs of 3 and of 2 updates
    assert {group["betas"] for group in trainer.optimizer.param_groups} == {(0.9, 0.998)}
    steps = {int(state["step"]) for state in trainer.optimizer.state_dict()["state"].values()}
    assert max(steps) == 5
    with pytest.raises(ConfigError, match=r"--opt-betas \(0\.9, 0\.998\), now \(0\.9, 0\.9\)"):
        train(npz, tmp_path / "run", **given, opt_betas=(0.9, 0.9))


def test_weight_decay_on_matrices_or_on_everything(npz: Path, tmp_path: Path) -> None:
    for everything, groups in ((False, {0.0, 0.05}), (True, {0.05})):
        trainer = Trainer(config(npz, tmp_path / "run", decay_all=everything))
        assert {group["weight_decay"] for group in trainer.optimizer.param_groups} == groups


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"opt": "sgd", "opt_betas": (0.9, 0.99)}, "--opt-betas with --opt sgd, which has none"),
        ({"opt": "adamm"}, "--opt adamm is refused by timm"),
        ({"sched": "cosinus"}, "--sched cosinus is refused by timm"),
        ({"sched": "plateau"}, "--sched plateau is refused by timm"),
    ],
)
def test_optimizers_and_schedules_that_timm_lacks(
    npz: Path, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        Trainer(config(npz, tmp_path / "run", **changes))


def test_an_update_of_several_passes_is_that_of_one_batch(npz: Path, tmp_path: Path) -> None:
    given = {"opt": "sgd", "sampling": "sandwich"}
    with plain_images():
        whole = train(npz, tmp_path / "whole", **given)
        parts = train(npz, tmp_path / "parts", **given, batch_size=4, grad_accum_steps=4)
        left = train(npz, tmp_path / "left", **given, batch_size=8, grad_accum_steps=4)  # of 4 passes and of 2
    assert (parts.per_epoch, left.per_epoch) == (3, 2)
    assert [record["train_loss"] for record in parts.history] == pytest.approx(
        [record["train_loss"] for record in whole.history], rel=1e-4
    )
    for name, tensor in weights(tmp_path / "whole").items():
        torch.testing.assert_close(weights(tmp_path / "parts")[name], tensor, atol=1e-5, rtol=1e-4)
    assert left.updates == 4 and int(left.model.updates) == 3


def test_other_settings_do_not_continue_a_run(npz: Path, tmp_path: Path) -> None:
    train(npz, tmp_path / "run", epochs=1)
    with pytest.raises(ConfigError, match=r"holds a run with --lr 0\.01, now 0\.02"):
        train(npz, tmp_path / "run", epochs=1, lr=0.02)
    assert train(npz, tmp_path / "run", epochs=1).history == read_json(tmp_path / "run" / "metrics.json")
    shutil.copy(tmp_path / "run" / "last.pt", tmp_path / "copy.pt")
    (tmp_path / "run" / "last.pt").write_bytes((tmp_path / "copy.pt").read_bytes()[:500])
    with pytest.raises(CheckpointError, match=r"cannot be read as a checkpoint"):
        train(npz, tmp_path / "run", epochs=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epoch", "one"),
        ("epoch", 3),
        ("history", 5),
        ("history", [{"epoch": 0}]),
        ("optimizer", {"state": 1}),
        ("optimizer", None),
        ("scaler", [1]),
        ("train", {"data": 3}),
    ],
)
def test_damaged_fields_of_the_last_checkpoint_are_one_line(name: str, value: Any, npz: Path, tmp_path: Path) -> None:
    trainer = Trainer(config(npz, tmp_path / "run", epochs=1))
    trainer.history = [{"epoch": 0, "train_loss": 1.0, "loss": 1.0, "top1": 50.0}]
    trainer.epoch = 1
    trainer.save(tmp_path / "run" / "last.pt")
    trainer.resume()
    state = torch.load(tmp_path / "run" / "last.pt", weights_only=True)
    torch.save({**state, name: value}, tmp_path / "run" / "last.pt")
    with pytest.raises(CheckpointError, match=r"cannot be continued|damaged settings of its training"):
        trainer.resume()


def test_wrong_input_is_explained(npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnknownChoiceError, match=r"unknown model \(--model\) 'mformer_smal'"):
        build_model(config(npz, tmp_path / "run", model="mformer_smal"), 2)
    with pytest.raises(ConfigError, match="resnet18 is one of timm's own"):
        build_model(config(npz, tmp_path / "run", model="resnet18"), 2)
    with pytest.raises(DataError, match="48 images do not fill one batch of 64"):
        Trainer(config(npz, tmp_path / "run", batch_size=64))
    with pytest.raises(NasExtError, match="the loss became nan at update"):
        train(npz, tmp_path / "diverged", lr=1e30)
    capsys.readouterr()
    arguments = [
        "--data",
        str(tmp_path / "none.npz"),
        "--model",
        "vit_cifar10_small",
        "--output",
        str(tmp_path / "run"),
    ]
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("no file ")
    assert not (tmp_path / "run").exists()


def test_the_command(npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Architecture(SPACE.smallest()).save(tmp_path / "A.json")
    arguments = [
        "--data",
        str(npz),
        "--val-count",
        "24",
        "--model",
        "vit_cifar10_small",
        "--subnet",
        str(tmp_path / "A.json"),
    ]
    assert main([*arguments, "--output", str(tmp_path / "run"), "--epochs", "1", "--batch-size", "16"]) == 0
    assert capsys.readouterr().out.startswith("best epoch 1: train loss ")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "best.pt",
        "last.pt",
        "metrics.json",
        "settings.json",
    }
