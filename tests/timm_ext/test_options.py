"""The command line of training, derived from its settings."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.options import Option, options_of
from tests.timm_ext.running import SPACE, config, train
from timm_ext.building import build_model
from timm_ext.checkpoint import load_model
from timm_ext.options import TrainConfig, parse

NEEDED = ["--data", "d", "--model", "m", "--output", "o"]


def test_every_setting_has_a_description_and_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert all(option.help for option in options_of(TrainConfig))
    with pytest.raises(SystemExit):
        parse(["--help"])
    shown = capsys.readouterr().out
    assert all(f"--{field.name.replace('_', '-')}" in shown for field in fields(TrainConfig))


def test_options_become_settings() -> None:
    assert parse([*NEEDED, "--opt-betas", "0.9", "0.998"]).opt_betas == (0.9, 0.998)
    config = parse([*NEEDED, "--batch-size", "64", "--lr", "2e-3", "--grad-checkpointing", "--sampling", "sandwich"])
    expected = TrainConfig(
        data="d", model="m", output="o", batch_size=64, lr=2e-3, grad_checkpointing=True, sampling="sandwich"
    )
    assert config == expected


def test_the_compiler_may_be_left_unsaid() -> None:
    assert parse([*NEEDED, "--torchcompile", "--seed", "2"]).torchcompile == "inductor"
    assert parse([*NEEDED, "--torchcompile", "eager"]).torchcompile == "eager"
    assert parse(NEEDED).torchcompile == ""


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"sampling": "greedy"}, UnknownChoiceError, "way of sampling"),
        ({"precision": "float16"}, UnknownChoiceError, "expected one of fp32, tf32, bf16, fp16"),
        ({"updates": -1}, ConfigError, "--updates is -1; expected a whole number from 0 on"),
        ({"val_count": -3}, ConfigError, "--val-count is -3; expected"),
        ({"opt_betas": (0.9,)}, ConfigError, "--opt-betas 0.9; expected two numbers"),
        ({"opt_betas": (0.9, 1.0)}, ConfigError, r"--opt-betas 0.9 1.0; expected two"),
        ({"warmup_updates": 3}, ConfigError, "--warmup-updates 3 without --updates"),
        ({"warmup_updates": 3, "updates": 3}, ConfigError, "--warmup-updates 3 of --updates 3"),
        ({"epochs": 0}, ConfigError, "--epochs is 0; expected a whole number from 1 on"),
        ({"grad_accum_steps": 0}, ConfigError, "--grad-accum-steps is 0; expected"),
        ({"log_interval": 0}, ConfigError, "--log-interval is 0; expected"),
        ({"clip_grad": -1.0}, ConfigError, "--clip-grad is -1.0; expected a number from 0 on"),
        ({"lr": float("1e-400")}, ConfigError, "--lr is 0.0; expected a number above 0"),
        ({"mixup": 0.2, "batch_size": 9}, ConfigError, "--batch-size 9 with mixup"),
        ({"ema": 1.0}, ConfigError, "--ema is 1.0; expected a number from 0 to below 1"),
        ({"scale": 0.0}, ConfigError, "--scale is 0.0; expected a number above 0 to 1"),
    ],
)
def test_settings_that_cannot_work(changes: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        TrainConfig(data="d", model="m", output="o", **changes)


CHECKED_ELSEWHERE = ("mos_experts", "mos_router", "mos_rank", "stability_tau", "stability_patience")
"""With the other settings of what is built of them."""
NUMBERS = [option for option in options_of(TrainConfig) if option.kind in (int, float)]


@pytest.mark.parametrize("option", [option for option in NUMBERS if not option.name.startswith(CHECKED_ELSEWHERE)])
def test_no_number_may_be_negative(option: Option) -> None:
    for wrong in (-1, float("nan"), float("inf")):
        value = (wrong,) if option.many else wrong
        with pytest.raises(ConfigError, match=option.flag):
            TrainConfig(**{"data": "d", "model": "m", "output": "o", option.name: value})


def test_experts_are_kept_by_checkpoints_and_bind_a_run(npz: Path, tmp_path: Path) -> None:
    run, more = tmp_path / "run", {"mos": "layer", "mos_experts": 3, "mos_router_layers": 4, "mos_router_hidden": 8}
    train(npz, run, updates=1, **more)
    experts = load_model(run / "last.pt").net.config.mos
    assert (experts.experts, experts.router_layers, experts.router_hidden) == (3, 4, 8)
    with pytest.raises(ConfigError, match="holds a run with --mos-experts 3, now 2"):
        train(npz, run, updates=1, **{**more, "mos_experts": 2})


def test_experts_of_a_network_that_has_none(npz: Path, tmp_path: Path) -> None:
    SPACE.smallest().save(tmp_path / "a.json")
    static = {"mos": "layer", "subnet": str(tmp_path / "a.json")}
    for given in ({}, static):
        with pytest.raises(ConfigError, match="--mos-experts of a network without experts"):
            build_model(config(npz, tmp_path / "run", mos_experts=3, **given), 2)
    with pytest.raises(ConfigError, match="--mos-router-layers without --model"):
        TrainConfig(data="d", init="i", output="o", mos_router_layers=3)
    for wrong, said in (({"mos_experts": 0}, "experts 0, .* at least 1"), ({"mos_router_dropout": 1.0}, "dropout 1.0")):
        with pytest.raises(ConfigError, match=said):
            build_model(config(npz, tmp_path / "run", mos="neuron", **wrong), 2)
