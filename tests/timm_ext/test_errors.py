"""Bad input: each call raises its error, with a message of one line that names the value or the option."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save_file

from nas_core.errors import (
    ArchitectureError,
    CheckpointError,
    ConfigError,
    DataError,
    NasExtError,
    SpaceError,
    UnknownChoiceError,
)
from nas_core.space import Architecture
from nas_core.space.image import image_architecture, image_space
from tests.timm_ext.running import SPACE, config, train
from tests.timm_ext.trained.tiny import save, vit
from timm_ext import elastic, load_model
from timm_ext.building import build_model
from timm_ext.data import JpegFile, open_images, open_splits
from timm_ext.host import HOST
from timm_ext.options import TrainConfig
from timm_ext.standalone import Origin, settings
from timm_ext.train import Trainer, main
from timm_ext.trained.reading import read_source
from timm_ext.trained.vit import plain_arguments

NAME = "mformer_cifar10_small"
PLAIN = {"model": "", "search_space": ""}


class Files:
    """Inputs of the calls."""

    def __init__(self, root: Path, npz: Path, folder: Path, run: Path, converted: Path) -> None:
        self.root, self.npz, self.folder, self.run, self.converted = root, npz, folder, run, converted
        SPACE.smallest().save(root / "A.json")
        save(vit(num_classes=3), root / "three.pt", num_classes=3)
        save(vit(img_size=64), root / "large.pt", img_size=64)
        (root / "text.pt").write_text("text")
        (root / "text.npz").write_text("text")
        (root / "text.safetensors").write_bytes(b"cut")

    def trainer(self, **changes: Any) -> Trainer:
        return Trainer(config(self.npz, self.root / "new" / "run", **changes))

    def distilled(self, **changes: Any) -> Trainer:
        teacher = str(self.converted / "trained.pt")
        return self.trainer(**{**PLAIN, "init": str(self.converted / "supernet.pt"), "teacher": teacher, **changes})

    def changed(self, **arrays: Any) -> Path:
        with np.load(self.npz) as table:
            np.savez(self.root / "odd.npz", **{**table, **arrays})
        return self.root / "odd.npz"

    def one_class(self) -> Path:
        shutil.copytree(self.folder / "train" / "red", self.root / "one" / "only", dirs_exist_ok=True)
        return self.root / "one"

    def renamed(self) -> Path:
        shutil.copytree(self.folder / "validation", self.root / "other", dirs_exist_ok=True)
        (self.root / "other" / "red").rename(self.root / "other" / "rose")
        return self.root / "other"

    def checkpoint(self, **changes: Any) -> Path:
        """The trained supernet's, with other content."""
        state = torch.load(self.run / "last.pt", weights_only=True)
        settings = {**state["nas_ext_image"], **changes.pop("settings", {})}
        torch.save({**state, "nas_ext_image": settings, **changes}, self.root / "changed.pt")
        return self.root / "changed.pt"

    def weights(self, suffix: str = ".pt", metadata: dict[str, str] | None = None, **about: Any) -> Path:
        """Weights of timm's model, with this description."""
        path = self.root / f"weights{suffix}"
        if metadata is not None:
            save_file(vit().state_dict(), path, metadata)
        else:
            torch.save({"state_dict": vit().state_dict(), **about}, path)
        return path

    def origin(self, **changes: Any) -> Origin:
        trained = TrainConfig(**config(self.npz, self.root / "run", **changes).__dict__)
        return Origin({"train": dict(trained.__dict__), "worker_count": 1}, self.root / "last.pt", None, SPACE)

    def standalone(self, origin: Origin, **changes: str) -> Any:
        return settings(origin, SPACE.smallest(), self.root, changes)

    def differs(self, genes: dict[str, Any]) -> Any:
        opened = HOST.open_exportable(self.converted / "supernet.pt")
        return opened.extract_plain(Architecture({**opened.space.largest(), **genes}), self.root / "plain.pth")


@pytest.fixture(scope="module")
def files(npz: Path, folder: Path, run: Path, converted: Path, tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("errors"), npz, folder, run, converted)


def options(**changes: Any) -> Callable[[Files], Any]:
    return lambda _: TrainConfig(**{"data": "d", "model": "m", "output": "o", **changes})


def trainer(**changes: Any) -> Callable[[Files], Any]:
    return lambda f: f.trainer(**changes)


def distilled(**changes: Any) -> Callable[[Files], Any]:
    return lambda f: f.distilled(
        **{name: f"{f.root}/{v[1:]}" if str(v)[:1] == "@" else v for name, v in changes.items()}
    )


def created(**arguments: Any) -> Callable[[Files], Any]:
    return lambda _: timm.create_model(NAME, **arguments)


def odd(**arrays: Any) -> Callable[[Files], Any]:
    return lambda f: JpegFile(f.changed(**arrays))


SANDWICH = {"teacher": "largest", "sampling": "sandwich"}
TIMMS = {"arch": "vit_tiny_patch16_224"}
Call = Callable[[Files], Any]
CASES: list[tuple[Call, type[Exception], str]] = [
    # settings of a training
    (options(sampling="greedy"), UnknownChoiceError, "greedy"),
    (options(precision="float16"), UnknownChoiceError, "float16"),
    (options(updates=-1), ConfigError, "--updates is -1"),
    (options(epochs=0), ConfigError, "--epochs is 0"),
    (options(lr=0.0), ConfigError, "--lr is 0.0"),
    (options(ema=1.0), ConfigError, "--ema is 1.0"),
    (options(scale=float("nan")), ConfigError, "--scale"),
    (options(distill_weight=1.5, teacher="t"), ConfigError, "1.5"),
    (options(opt_betas=(0.9, 1.0)), ConfigError, "--opt-betas is 0.9 1.0"),
    (options(warmup_updates=3), ConfigError, "--warmup-updates 3 is given without --updates"),
    (options(warmup_updates=3, updates=3), ConfigError, "--warmup-updates 3 is not below --updates 3"),
    (options(mixup=0.2, batch_size=9), ConfigError, "--batch-size is 9"),
    (options(model=""), ConfigError, "--model"),
    (options(model="", init="i", mos_router_layers=3), ConfigError, "--mos-router-layers is given without --model"),
    (options(model="", init="i", subnet="a.json"), ConfigError, "--subnet is given without --model"),
    (options(distill_temperature=2.0), ConfigError, "--distill-temperature is given without --teacher"),
    (options(teacher="largest"), ConfigError, "--sampling sandwich"),
    (options(distill_weight=1.0, **SANDWICH), ConfigError, "--init"),
    # trainers
    (trainer(model="mformer_smal"), UnknownChoiceError, "mformer_smal"),
    (trainer(model="resnet18"), ConfigError, "resnet18"),
    (trainer(batch_size=64), DataError, "64"),
    (trainer(opt="sgd", opt_betas=(0.9, 0.99)), ConfigError, "--opt sgd"),
    (trainer(opt="adamm"), ConfigError, "--opt adamm"),
    (trainer(sched="plateau"), ConfigError, "--sched plateau"),
    (trainer(torchcompile="inductor"), ConfigError, "--torchcompile"),
    (trainer(mos_router_hidden=16), ConfigError, "--mos-router-hidden"),
    (lambda f: f.trainer(mos="layer", mos_experts=3, subnet=str(f.root / "A.json")), ConfigError, "--mos-experts"),
    (lambda f: build_model(config(f.npz, f.root / "r", mos="neuron", mos_experts=0), 2), ConfigError, "experts 0"),
    (lambda f: f.trainer(init=str(f.converted / "subnet.pt")), CheckpointError, "subnet.pt"),
    (lambda f: train(f.npz, f.root / "diverged", lr=1e30), NasExtError, "nan"),
    # teachers
    (distilled(teacher="@three.pt"), ConfigError, "(1, 3)"),
    (distilled(teacher="@large.pt"), ConfigError, "large.pt"),
    (distilled(teacher="@text.pt"), CheckpointError, "text.pt"),
    (distilled(teacher="@absent.pt"), DataError, "absent.pt"),
    (lambda f: f.distilled(**SANDWICH, init=str(f.converted / "subnet.pt")), ConfigError, "largest"),
    # images
    (lambda f: open_images(f.root / "nothing.npz"), DataError, "nothing.npz"),
    (lambda f: open_images(f.root / "text.npz"), DataError, "text.npz"),
    (lambda f: open_images(f.run), DataError, "run"),
    (lambda f: open_splits(f.one_class(), None, 0, 1), DataError, "1 class"),
    (lambda f: open_splits(f.folder, f.renamed(), 0, 1), ConfigError, "'rose'"),
    (lambda f: open_splits(f.npz, None, 72, 1), ConfigError, "--val-count 72"),
    (lambda f: open_splits(f.npz, None, 20, 1, train_count=60), ConfigError, "--train-count 60"),
    (odd(offset=np.arange(72)), DataError, "72 offsets"),
    (odd(label=np.full(72, 7)), DataError, "labels"),
    (lambda f: JpegFile(f.changed(data=np.zeros_like(np.load(f.npz)["data"]))).image(3), DataError, "image 3 of"),
    # models
    (created(global_pool="map"), UnknownChoiceError, "'map'"),
    (created(drop_rates=0.1), UnknownChoiceError, "'drop_rates'"),
    (created(search_space="mformer_small_space"), UnknownChoiceError, "mformer_small_space"),
    (created(search_space=NAME, subnet=image_architecture("cosformer_star_cifar10")), ArchitectureError, NAME),
    (lambda _: timm.create_model(NAME)(torch.zeros(1, 3, 30, 30)), ConfigError, "30 x 30"),
    # checkpoints
    (lambda f: HOST.open(f.converted / "subnet.pt"), CheckpointError, "subnet.pt"),
    (lambda f: HOST.open(f.converted / "trained.pt"), CheckpointError, "nas-ext elastic"),
    (lambda f: HOST.open(f.run / "last.pt", precision="tf32"), ConfigError, "tf32"),
    (lambda f: HOST.open(f.checkpoint(settings={"version": 99})), CheckpointError, "version"),
    (lambda f: HOST.open(f.checkpoint(settings={"arguments": {"x": 1}})), CheckpointError, "'x'"),
    (lambda f: HOST.open(f.checkpoint(state_dict_ema=None, state_dict={"n": torch.ones(3)})), CheckpointError, "fit"),
    (lambda f: HOST.open(f.checkpoint(state_dict=None)), CheckpointError, "changed.pt"),
    (lambda f: load_model(f.root / "absent.pt"), DataError, "absent.pt"),
    (lambda f: load_model(f.root / "text.safetensors"), CheckpointError, "text.safetensors"),
    (lambda f: HOST.open(f.run / "last.pt", data=str(f.npz), valid_subset="test").validation_set(), DataError, "test"),
    # trained models
    (lambda f: elastic(f.root / "absent.pt"), DataError, "absent.pt"),
    (lambda f: elastic(f.root / "text.pt"), CheckpointError, "text.pt"),
    (lambda f: elastic(f.root / "text.safetensors"), CheckpointError, "text.safetensors"),
    (lambda f: elastic(f.converted / "supernet.pt"), CheckpointError, "supernet.pt"),
    (lambda f: read_source(f.weights()), CheckpointError, "does not name its model"),
    (lambda f: read_source(f.weights(arch="vit_nobody")), CheckpointError, "vit_nobody"),
    (lambda f: read_source(f.weights(**TIMMS)), CheckpointError, "does not fit"),
    (lambda f: read_source(f.weights(".safetensors", {**TIMMS, "model_kwargs": "{"})), CheckpointError, "weights"),
    (lambda _: elastic(vit(dynamic_img_size=True, dynamic_img_pad=True)), CheckpointError, "dynamic_img_pad"),
    (lambda _: elastic("vit_giant_patch14_dinov2", pretrained=True), CheckpointError, "vit_giant_patch14_dinov2"),
    (lambda f: HOST.open_trained(f.root / "three.pt", calibration_batches=1), DataError, "--data"),
    (
        lambda f: elastic(f.root / "three.pt", data=f.npz, calibration_batches=1, importance_by="activation"),
        DataError,
        "2 classes",
    ),
    (
        lambda f: elastic(vit(num_classes=0), calibration_batches=1, importance_by="activation", data=f.npz),
        ConfigError,
        "no class",
    ),
    (lambda _: elastic(vit(), space=tiny_space(40)), SpaceError, "embed_dim 40"),
    (lambda _: elastic(vit(), space=tiny_space(), attention=("linear",), fit_steps=0), ConfigError, "space"),
    (lambda f: f.trainer(**PLAIN, init=str(three(f))), ConfigError, "3 classes"),
    (lambda f: f.differs({"ffn_dim": (64, 32, 64)}), ConfigError, "32, 64 hidden units"),
    (lambda f: f.differs({"heads": (4, 2, 4)}), ConfigError, "2, 4 heads"),
    (lambda f: f.differs({"heads": (2, 2, 2)}), ConfigError, "16 wide"),
    (lambda f: plain_arguments(load_model(f.run / "last.pt").net, linear()), ConfigError, "linear attention"),
    # standalone trainings
    (lambda f: f.standalone(Origin({}, f.root / "last.pt", None, SPACE)), CheckpointError, "last.pt"),
    (lambda f: f.standalone(f.origin(**PLAIN, init="i")), ConfigError, "last.pt"),
    (lambda f: f.standalone(f.origin(), val_data="x"), ConfigError, "val_data"),
    (lambda f: f.standalone(f.origin(), seed="two"), ConfigError, "seed"),
    (lambda f: f.standalone(f.origin(val_count=0)._replace(data=str(f.run))), ConfigError, "run"),
]


def tiny_space(width: int = 32) -> Any:
    return image_space("own", layers=(2, 3), embed_dims=(24, width), ffn_dims=(32, 64), heads=(2, 4), head_dim=8,
                       image_size=32, patch_size=8, relative_clip=0)  # fmt: skip


def three(files: Files) -> Path:
    elastic(vit(num_classes=3), out=files.root / "supernet3.pt")
    return files.root / "supernet3.pt"


def linear() -> Architecture:
    return Architecture({**SPACE.largest(), "attention": ("linear", "linear")})


@pytest.mark.parametrize("index", range(len(CASES)), ids=lambda index: f"{index}-{CASES[index][2]}")
def test_bad_input_is_one_line_that_names_it(index: int, files: Files) -> None:
    call, error, value = CASES[index]
    with pytest.raises(error) as caught:
        call(files)
    assert "\n" not in str(caught.value) and value in str(caught.value), str(caught.value)


def test_a_run_folder_of_other_settings(npz: Path, tmp_path: Path) -> None:
    train(npz, tmp_path / "run", epochs=1, mos="layer", mos_experts=3)
    for changes, value in (
        ({"lr": 0.02}, "--lr 0.01, but this run has 0.02"),
        ({"mos_experts": 2}, "--mos-experts 3, but this run has 2"),
    ):
        with pytest.raises(ConfigError, match=value):
            train(npz, tmp_path / "run", **{"epochs": 1, "mos": "layer", "mos_experts": 3, **changes})


def test_the_commands_report_errors_on_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = f"--data {tmp_path}/none.npz --model vit_cifar10_small --output {tmp_path}/run"
    assert main(arguments.split()) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not (tmp_path / "run").exists()
