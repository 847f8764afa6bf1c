"""Studies of image supernets: their routers and gradients."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from nas_core.cli import main
from nas_core.files import append_jsonl, read_json
from nas_core.studies.conflict import gradient_cosine, gradient_of, used_weights
from nas_core.supernet import open_supernet
from tests.timm_ext.running import SPACE, train
from timm_ext.checkpoint import read_checkpoint
from timm_ext.host import ImageSupernet

pytestmark = pytest.mark.usefixtures("warm_programs")


@pytest.fixture(scope="module")
def run(npz: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a trained supernet with experts."""
    folder = tmp_path_factory.mktemp("supernet") / "run"
    train(npz, folder, mos="neuron", smoothing=0.2, epochs=1)
    return folder


def test_routing_and_conflict_of_one_checkpoint(run: Path, tmp_path: Path) -> None:
    given = ["--checkpoint", str(run / "last.pt"), "--out", str(tmp_path)]
    assert main(["lab", "study", "routing", *given, "--set", "random=1"]) == 0
    assert main(["lab", "study", "conflict", *given, "--set", "against=sandwich", "--set", "batches=1"]) == 0
    routing, conflict = (read_json(tmp_path / f"{name}.json") for name in ("routing", "conflict"))
    assert len(routing["rows"]) == 6 and all(row["distance"] > 0 for row in routing["rows"])
    assert all(0 < row["cosine"] <= 1 for row in conflict["rows"] if row["architecture"] == "largest")
    assert conflict["summary"][0]["against"] == "sandwich"


def test_the_gradient_is_that_of_the_loss_which_training_minimises(run: Path) -> None:
    supernet = open_supernet(run / "last.pt")
    ((images, labels),) = supernet.batches()
    architecture = SPACE.smallest()
    net = supernet.network
    loss = F.cross_entropy(net(net.select(architecture), images), labels, label_smoothing=0.2)
    assert float(supernet.training_loss(architecture, (images, labels)).detach()) == pytest.approx(float(loss))
    by_hand = torch.autograd.grad(loss, list(net.parameters()), allow_unused=True)
    ours = gradient_of(supernet, architecture, (images, labels))
    for mine, theirs in zip(ours, by_hand, strict=True):
        torch.testing.assert_close(mine, torch.zeros_like(mine) if theirs is None else theirs)
    masks = used_weights(net, architecture)
    assert not any(bool((one[~mask] != 0).any()) for one, mask in zip(ours, masks, strict=True))
    assert gradient_cosine(ours, ours, masks) == pytest.approx(1.0)


def test_gradients_are_of_images_in_random_order(run: Path) -> None:
    supernet = open_supernet(run / "last.pt")
    assert isinstance(supernet, ImageSupernet)
    ((images, labels),), ((same, _),) = supernet.batches(), supernet.batches()
    ((unmixed, in_order),) = supernet.evaluated()
    assert in_order.tolist() == sorted(in_order.tolist()) != labels.tolist()
    assert sorted(labels.tolist()) == in_order.tolist() and torch.equal(images, same)
    assert {row.tobytes() for row in images.numpy()} == {row.tobytes() for row in unmixed.numpy()}


def test_gap_trains_standalone_networks_by_timm_ext(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [
        "lab",
        "study",
        "gap",
        "--checkpoint",
        str(run / "last.pt"),
        "--out",
        str(tmp_path),
        "--set",
        "architectures=3",
    ]
    assert main([*given, "--set", "train.epochs=1", "--set", "train.lr=0.001"]) == 0
    found = read_json(tmp_path / "gap.json")
    assert len(found["rows"]) == 3
    folder = next((tmp_path / "standalone").iterdir())
    settings = read_json(folder / "settings.json")
    assert (settings["epochs"], settings["lr"], settings["mos"]) == (1, 0.001, "")
    assert main([*given, "--set", "metric=bleu"]) == 2
    assert "no metric 'bleu'" in capsys.readouterr().err


def test_subnets_are_trained_further_under_one_schedule(run: Path, tmp_path: Path) -> None:
    standalone = tmp_path / "standalone.jsonl"
    record = {"architecture": SPACE.smallest().to_dict(), "metrics": {"top1": 100.5}, "updates": 16}
    append_jsonl(standalone, record)  # more than it can reach
    given = ["--checkpoint", str(run / "last.pt"), "--out", str(tmp_path), "--set", f"standalone={standalone}"]
    assert (
        main(
            ["lab", "study", "close-gap", *given, "--set", "metric=top1", "--set", "every=2", "--set", "most_updates=4"]
        )
        == 0
    )
    found = read_json(tmp_path / "close-gap.json")
    assert list(found["curves"]["last"]["1"]) == ["0", "2", "4"] and found["rows"][0]["updates"] is None
    assert found["summary"][0]["saved"] == pytest.approx(1 - 4 / 16)
    (folder,) = (path for path in tmp_path.glob("further/*/*") if path.is_dir())
    settings = read_json(folder / "settings.json")
    assert (settings["updates"], settings["keep_every"], settings["mos"]) == (4, 2, "")
    assert settings["init"] == str(folder / "inherited.pt") and not list((folder / "kept").iterdir())


def test_kept_networks_tell_their_updates(npz: Path, tmp_path: Path) -> None:
    train(npz, tmp_path / "run", epochs=1, keep_every=2)
    assert read_checkpoint(tmp_path / "run" / "kept" / "2.pt")["updates"] == 2
    assert read_checkpoint(tmp_path / "run" / "last.pt")["updates"] == 3


def test_trained_supernets_are_evaluated_on_the_very_images(run: Path) -> None:
    supernet = open_supernet(run / "best.pt")
    assert isinstance(supernet, ImageSupernet)
    trained = supernet.trained_supernet(run)
    assert trained.path == run / "best.pt" and trained.evaluated() is supernet.evaluated()


def test_routers_of_other_depth(run: Path, tmp_path: Path) -> None:
    given = [
        "lab",
        "study",
        "router",
        "--checkpoint",
        str(run / "last.pt"),
        "--out",
        str(tmp_path),
        "--set",
        "random=1",
    ]
    assert main([*given, "--set", "layers=1", "--set", "train.updates=1"]) == 0
    one, two = read_json(tmp_path / "router.json")["summary"]
    assert (one["router_layers"], one["trained"], two["router_layers"]) == (1, "here", 2)
    assert one["parameters_m"] < two["parameters_m"]


def test_settings_that_there_are_not(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["lab", "study", "gap", "--checkpoint", str(run / "last.pt"), "--set"]
    assert main([*given, "train.epoch=3", "--out", str(tmp_path / "a")]) == 2
    assert "Did you mean 'epochs'" in capsys.readouterr().err
    assert main([*given, "train.output=3", "--out", str(tmp_path / "b")]) == 2
    assert "is set by the study" in capsys.readouterr().err


def test_overhead_and_stability(run: Path, tmp_path: Path) -> None:
    given = ["--checkpoint", str(run / "last.pt"), "--out", str(tmp_path)]
    assert (
        main(["lab", "study", "overhead", *given, "--set", "random=0", "--set", "repeats=1", "--set", "warmup=0"]) == 0
    )
    assert read_json(tmp_path / "overhead.json")["summary"][0]["memory_mb_more"] > 0
    small = [
        part
        for name in ("population=4", "parents=2", "mutations=1", "crossovers=1")
        for part in ("--set", f"set.{name}")
    ]
    assert main(["lab", "study", "stability", *given, "--set", "seeds=2", "--set", "set.iterations=1", *small]) == 0
    assert len(read_json(tmp_path / "stability.json")["rows"]) == 2
