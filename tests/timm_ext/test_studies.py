"""Studies of image supernets: routers, gradients, and the trainings that they start."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from nas_core.cli import main
from nas_core.files.journal import append_jsonl
from nas_core.files.reading import read_json
from nas_core.layers import MoSConfig
from nas_core.studies.conflict import gradient_cosine, gradient_of, used_weights
from nas_core.supernet import open_supernet
from tests.timm_ext.running import SPACE, config
from timm_ext.host import ImageSupernet
from timm_ext.options import TrainConfig, parse
from timm_ext.standalone import Origin, settings, supernet_settings

pytestmark = pytest.mark.usefixtures("warm_programs")


def study(name: str, run: Path, out: Path, *assignments: str) -> dict[str, Any]:
    options = [part for assignment in assignments for part in ("--set", assignment)]
    assert main(["lab", "study", name, "--checkpoint", str(run / "last.pt"), "--out", str(out), *options]) == 0
    return read_json(out / f"{name}.json")


def test_routing_and_conflict_of_one_checkpoint(run: Path, tmp_path: Path) -> None:
    routing = study("routing", run, tmp_path, "random=1")
    conflict = study("conflict", run, tmp_path, "against=sandwich", "batches=1")
    assert len(routing["rows"]) == 6 and all(row["distance"] > 0 for row in routing["rows"])
    assert all(0 < row["cosine"] <= 1 for row in conflict["rows"] if row["architecture"] == "largest")
    assert conflict["summary"][0]["against"] == "sandwich"


def test_the_gradient_is_that_of_the_training_loss(run: Path) -> None:
    supernet = open_supernet(run / "last.pt")
    ((images, labels),) = supernet.batches()
    architecture, net = SPACE.smallest(), supernet.network
    loss = F.cross_entropy(net(net.select(architecture), images), labels, label_smoothing=0.2)
    assert float(supernet.training_loss(architecture, (images, labels)).detach()) == pytest.approx(float(loss))
    by_hand = torch.autograd.grad(loss, list(net.parameters()), allow_unused=True)
    gradients, masks = gradient_of(supernet, architecture, (images, labels)), used_weights(net, architecture)
    for gradient, expected in zip(gradients, by_hand, strict=True):
        torch.testing.assert_close(gradient, torch.zeros_like(gradient) if expected is None else expected)
    assert not any(bool((one[~mask] != 0).any()) for one, mask in zip(gradients, masks, strict=True))
    assert gradient_cosine(gradients, gradients, masks) == pytest.approx(1.0)


def test_gradients_are_of_images_in_random_order(run: Path) -> None:
    supernet = open_supernet(run / "last.pt")
    assert isinstance(supernet, ImageSupernet)
    ((images, labels),), ((same, _),) = supernet.batches(), supernet.batches()
    ((unmixed, in_order),) = supernet.evaluated()
    assert in_order.tolist() == sorted(in_order.tolist()) != labels.tolist()
    assert sorted(labels.tolist()) == in_order.tolist() and torch.equal(images, same)
    assert {row.tobytes() for row in images.numpy()} == {row.tobytes() for row in unmixed.numpy()}


def test_gap_trains_standalone_networks(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gap = study("gap", run, tmp_path, "architectures=3", "train.epochs=1", "train.lr=0.001")
    assert len(gap["rows"]) == 3
    written = read_json(next((tmp_path / "standalone").iterdir()) / "settings.json")
    assert (written["epochs"], written["lr"], written["mos"]) == (1, 0.001, "")
    arguments = ["lab", "study", "gap", "--checkpoint", str(run / "last.pt"), "--out", str(tmp_path / "b"), "--set"]
    for wrong, message in (("train.epoch=3", "'epochs'"), ("train.output=3", "output")):
        assert main([*arguments, wrong]) == 2
        assert message in capsys.readouterr().err


def test_subnets_are_trained_further_under_one_schedule(run: Path, tmp_path: Path) -> None:
    standalone = tmp_path / "standalone.jsonl"
    record = {"architecture": SPACE.smallest().to_dict(), "metrics": {"top1": 100.5}, "updates": 16}
    append_jsonl(standalone, record)  # more than it can reach
    assignments = (f"standalone={standalone}", "metric=top1", "every=2", "most_updates=4")
    result = study("close-gap", run, tmp_path, *assignments)
    assert list(result["curves"]["last"]["1"]) == ["0", "2", "4"] and result["rows"][0]["updates"] is None
    assert result["summary"][0]["saved"] == pytest.approx(1 - 4 / 16)
    (folder,) = (path for path in tmp_path.glob("further/*/*") if path.is_dir())
    written = read_json(folder / "settings.json")
    assert (written["updates"], written["keep_every"], written["mos"]) == (4, 2, "")
    assert written["init"] == str(folder / "inherited.pt") and not list((folder / "kept").iterdir())


def test_routers_of_other_depth(run: Path, tmp_path: Path) -> None:
    first, two = study("router", run, tmp_path, "random=1", "layers=1", "train.updates=1")["summary"]
    assert (first["router_layers"], first["trained"], two["router_layers"]) == (1, "here", 2)
    assert first["parameters_m"] < two["parameters_m"]
    supernet = open_supernet(run / "best.pt")
    assert isinstance(supernet, ImageSupernet)
    other = supernet.trained_supernet(run)
    assert other.path == run / "best.pt" and other.evaluated() is supernet.evaluated()


def standalone(
    folder: Path, trained: TrainConfig, data: Path | None = None, workers: int = 1, **changes: str
) -> TrainConfig:
    """The settings of a network of a supernet with these settings."""
    state: dict[str, Any] = {"train": asdict(trained), "worker_count": workers}
    origin = Origin(state, folder / "last.pt", None if data is None else str(data), SPACE)
    return parse(settings(origin, SPACE.smallest(), folder, changes))


def test_epochs_updates_and_batches_of_standalone_networks(npz: Path, tmp_path: Path) -> None:
    trained = config(npz, tmp_path / "run", updates=500, warmup_updates=50, grad_accum_steps=2)
    for changes, expected in (
        ({}, (2, 500, 50, 0)),
        ({"epochs": "20"}, (20, 0, 0, 0)),
        ({"updates": "60"}, (2, 60, 50, 0)),
        ({"warmup_epochs": "1"}, (2, 500, 0, 1)),
    ):
        own = standalone(tmp_path, trained, **changes)
        assert (own.epochs, own.updates, own.warmup_updates, own.warmup_epochs) == expected
    assert standalone(tmp_path, trained, workers=4).grad_accum_steps == 8  # one process for four
    assert standalone(tmp_path, trained, workers=4, grad_accum_steps="3").grad_accum_steps == 3


def test_images_of_standalone_networks(npz: Path, folder: Path, tmp_path: Path) -> None:
    train, validation, other = folder / "train", folder / "validation", tmp_path / "evaluated"
    trained = config(train, tmp_path / "run", val_data=str(validation))
    for data, expected in ((None, validation), (other, other)):
        own = standalone(tmp_path, trained, data)
        assert (own.data, own.val_data) == (str(train.resolve()), str(expected.resolve()))
    gone = config(tmp_path / "gone" / "train", tmp_path / "run", val_data=str(tmp_path / "gone" / "val"))
    own = standalone(tmp_path, gone, folder)  # all of it has moved: train/ is trained on, validation/ evaluated
    assert own.data == own.val_data == str(folder.resolve())
    for data in (folder, tmp_path / npz.name):  # a training split, and the same file elsewhere
        own = standalone(tmp_path, config(npz, tmp_path / "run", val_count=0), data)
        assert (own.data, own.val_data) == (str(data.resolve()), "")
    for trained in (config(folder, tmp_path, val_count=0), config(npz, tmp_path, val_data=str(folder))):
        assert standalone(tmp_path, trained, seed="2").seed == 2  # its images do not depend on the seed


def test_other_experts_have_the_supernets_other_settings(npz: Path, tmp_path: Path) -> None:
    trained = config(npz, tmp_path / "run", mos="layer", mos_router_hidden=16)
    origin = Origin({"train": asdict(trained), "worker_count": 1}, tmp_path / "last.pt", None, SPACE)
    for count in (3, 1):
        experts = MoSConfig(kind="layer", experts=count, router_hidden=16)
        own = parse(supernet_settings(origin, experts, tmp_path, {}))
        assert (own.mos, own.mos_experts, own.mos_router_hidden) == ("layer", count, 16)
