"""Training and evaluating image networks on any device, in every precision."""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nas_core.errors import ConfigError, NasExtError
from nas_core.files.reading import read_json
from nas_core.precision import check_precision
from nas_core.space import Architecture
from tests.devices import PRECISIONS, close_in
from tests.host_reads import host_reads, no_host_reads
from tests.timm_ext.running import SPACE, config, train
from tests.timm_ext.trained.tiny import images, vit
from timm_ext import elastic
from timm_ext.checkpoint import read_checkpoint
from timm_ext.evaluation import evaluate
from timm_ext.host import HOST
from timm_ext.step import Losses
from timm_ext.train import Trainer

SEED = torch.Generator().manual_seed(5)
IMAGES, LABELS = torch.randn(16, 3, 32, 32, generator=SEED), torch.tensor([0, 1] * 8)


def on(device: str, precision: str) -> dict[str, Any]:
    """Settings of a device; the CPU has no TF32, nor have older GPUs."""
    try:
        return {"device": device, "precision": check_precision(precision, device)}
    except ConfigError as error:
        pytest.skip(str(error))


def scale_less(trainer: Trainer) -> None:
    """From torch's own first scale, 2**16, gradients of a new network overflow for some updates."""
    enabled = trainer.config.precision == "fp16"
    trainer.step.scaler = torch.amp.GradScaler(trainer.device.type, init_scale=256.0, enabled=enabled)


def gradients(npz: Path, output: Path, parts: int = 1, **changes: Any) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of a first update, and its gradient without loss scale."""
    trainer = Trainer(config(npz, output, opt="sgd", lr=1e-9, clip_grad=1e9, **changes))
    trainer.model.train()
    scale_less(trainer)
    losses: list[Tensor] = []
    pairs = zip(IMAGES.to(trainer.device).chunk(parts), LABELS.to(trainer.device).chunk(parts), strict=True)
    for part, pair in enumerate(pairs):
        losses += trainer.train_step(*pair, 0, part, parts)
    gradients = {name: one.grad for name, one in trainer.model.named_parameters() if one.grad is not None}
    return torch.stack(losses).sum(), gradients


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "changes",
    [{"mos": "layer", "sampling": "sandwich"}, {"mos": "neuron"}],
    ids=["layer", "neuron"],
)
def test_an_update_is_that_of_float32(
    device: str, precision: str, changes: dict[str, Any], npz: Path, tmp_path: Path
) -> None:
    expected, reference = gradients(npz, tmp_path / "cpu", **changes)
    loss, gradients_by_name = gradients(npz, tmp_path / "device", **on(device, precision), **changes)
    close_in(precision, loss, expected)
    assert set(gradients_by_name) == set(reference)
    for side in ("net.patch_embed", "net.layers.0.ffn", "net.norm", "net.head"):
        flat, wanted = (
            torch.cat([one.detach().float().cpu().flatten() for name, one in each.items() if name.startswith(side)])
            for each in (gradients_by_name, reference)
        )
        close_in(precision, flat, wanted, times=20 if precision == "fp32" else 5)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_a_run_in_every_precision(device: str, precision: str, npz: Path, tmp_path: Path) -> None:
    settings = {**on(device, precision), "ema": 0.9, "mixup": 0.2}
    trainer = train(npz, tmp_path / "run", sampling="sandwich", **settings)
    assert len(trainer.history) == 2 and trainer.history[-1]["loss"] < 1
    state = read_checkpoint(tmp_path / "run" / "last.pt")
    assert bool(state["scaler"]) == (precision == "fp16")
    repeated = train(npz, tmp_path / "run", sampling="sandwich", **settings)  # nothing is left to do
    assert repeated.history == trainer.history
    if precision == "fp16":
        assert repeated.step.scaler.get_scale() == trainer.step.scaler.get_scale()


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_a_compiled_network_trains_as_it_does_otherwise(device: str, backend: str, npz: Path, tmp_path: Path) -> None:
    if device == "cpu" and backend == "inductor":
        pytest.skip("takes a minute on a CPU, and what it compiles there is torch's")
    Architecture({**SPACE.smallest(), "attention": ("softmax",)}).save(tmp_path / "A.json")
    ema = 0.5 if backend == "eager" else 0.0
    settings = {"subnet": str(tmp_path / "A.json"), "device": device, "opt": "sgd", "ema": ema, "epochs": 1}
    plain = train(npz, tmp_path / "plain", **settings, val_count=16)
    compiled = train(npz, tmp_path / "compiled", torchcompile=backend, **settings, val_count=16)
    states = [read_checkpoint(tmp_path / name / "last.pt") for name in ("plain", "compiled")]
    for key in ("state_dict", "state_dict_ema") if ema else ("state_dict",):
        assert list(states[0][key]) == list(states[1][key])
        for name, tensor in states[0][key].items():
            torch.testing.assert_close(states[1][key][name], tensor, atol=1e-3, rtol=1e-3)
    assert compiled.history[-1]["loss"] == pytest.approx(plain.history[-1]["loss"], rel=1e-2)


def test_the_host_does_not_wait_in_an_update(device: str, npz: Path, tmp_path: Path) -> None:
    settings = {"sampling": "sandwich", "opt": "sgd", "ema": 0.9, "clip_grad": 1}
    trainer = Trainer(config(npz, tmp_path / "run", device=device, **settings))
    trainer.model.train()
    images, labels = IMAGES.to(device), LABELS.to(device)
    losses = Losses(trainer.step)
    assert trainer.average is not None
    for update in range(6):
        with no_host_reads(device) if update > 2 else nullcontext():  # the first updates warm up
            losses.add(update, trainer.train_step(images, labels, update))
            trainer.average.update(trainer.model, step=update + 1)
    assert math.isfinite(losses.read())


def test_the_host_looks_once_at_an_evaluation(device: str, npz: Path, tmp_path: Path) -> None:
    model = Trainer(config(npz, tmp_path / "run", device=device)).model
    batches = [(IMAGES.to(device), LABELS.to(device)), (IMAGES[:5].to(device), LABELS[:5].to(device))] * 2
    subnets = {"small": SPACE.smallest(), "large": SPACE.largest()}
    first = evaluate(model, batches, subnets, torch.device(device))
    with host_reads(device) as reads:
        assert evaluate(model, batches, subnets, torch.device(device)) == first
    assert len(reads) <= 1
    recorded = []
    full = evaluate(
        model,
        batches,
        subnets,
        torch.device(device),
        after_batch=lambda index, results: recorded.append((index, results)),
    )
    assert full == first == recorded[-1][1] and [index for index, _ in recorded] == [1, 2, 3, 4]


def test_draws_do_not_ask_the_device(device: str, npz: Path, tmp_path: Path) -> None:
    model = Trainer(config(npz, tmp_path / "run", device=device)).model.train()
    images = IMAGES.to(device)
    drawn = []
    with no_host_reads(device):
        for _ in range(3):
            model(images)
            drawn.append(model.architecture)
    assert drawn == [model.draw(update) for update in range(3)] and int(model.updates) == 3
    other = Trainer(config(npz, tmp_path / "run", device=device)).model.train()
    other.load_state_dict(model.state_dict())
    other(images)
    assert other.architecture == model.draw(3)


def test_an_fp16_run_leaves_updates_out_until_it_diverges(device: str, npz: Path, tmp_path: Path) -> None:
    trainer = Trainer(config(npz, tmp_path / "run", device=device, precision="fp16"))
    scale_less(trainer)
    trainer.model.train()
    images, labels = IMAGES.to(device), LABELS.to(device)
    losses, before = Losses(trainer.step), trainer.model.net.norm.weight.detach().clone()
    losses.add(0, trainer.train_step(images * math.inf, labels, 0))
    assert torch.equal(trainer.model.net.norm.weight, before)  # left out
    losses.add(1, trainer.train_step(images, labels, 1))
    assert not torch.equal(trainer.model.net.norm.weight, before)
    assert math.isfinite(losses.read()) and losses.count == 1
    for update in range(2, 40):
        losses.add(update, trainer.train_step(images * math.inf, labels, update))
    with pytest.raises(NasExtError, match="gradients in fp16 are not finite at update 39, even with a loss scale of"):
        losses.read()
    empty = Losses(trainer.step)
    with pytest.raises(NasExtError, match="no loss of this epoch is finite"):
        _ = empty.mean


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_supernet_is_evaluated(device: str, precision: str, run: Path) -> None:
    supernet = HOST.open(run / "last.pt", **on(device, precision))
    expected = torch.tensor(read_json(run / "metrics.json")[-1]["subnets"]["largest"]["loss"])
    close_in(precision, torch.tensor(supernet.evaluate(SPACE.largest())["loss"]), expected, times=3)
    reports: list[float] = []
    supernet.evaluate(SPACE.largest(), lambda share, metrics: reports.append(share))
    assert reports == [1.0]


def test_another_device_than_the_current_one(second_device: str, npz: Path, tmp_path: Path) -> None:
    trainer = train(npz, tmp_path / "run", device=second_device, epochs=1, precision="bf16", ema=0.5)
    assert {one.device for one in trainer.model.parameters()} == {torch.device(second_device)}
    supernet = HOST.open(tmp_path / "run" / "last.pt", device=second_device, precision="fp16")
    first = supernet.evaluate(SPACE.smallest())
    assert first == supernet.evaluate(SPACE.smallest()) and math.isfinite(first["loss"])
    count = supernet.extract(SPACE.smallest(), tmp_path / "subnet.pt")
    static = read_checkpoint(tmp_path / "subnet.pt")["state_dict"]
    assert {one.dtype for one in static.values()} == {torch.float32} and count > 0


def test_a_trained_model_is_converted_and_teaches(device: str, npz: Path, tmp_path: Path) -> None:
    model, teacher = vit(), str(tmp_path / "supernet.pt")
    supernet = elastic(model, importance_by="activation", calibration_batches=1, data=npz, device=device, out=teacher)
    x = images(model).to(device)
    with torch.no_grad():
        torch.testing.assert_close(supernet(x), model(x), atol=1e-4, rtol=1e-4)
    named = {"model": "", "search_space": "", "init": teacher, "teacher": teacher, "device": device, "epochs": 1}
    trainer = Trainer(config(npz, tmp_path / "run", **named))
    assert trainer.run()["loss"] > 0
    assert next(trainer.model.parameters()).device.type == torch.device(device).type
