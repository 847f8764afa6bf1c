"""Every step of every experiment is a command that its program understands."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest
import typer
import typer.main

from examples.papers.experiment import list_experiments, read_experiment
from nas_core.cli import COMMANDS, LAB
from nas_core.options import read_pairs
from nas_core.search.registry import config_of
from tests.examples.papers.conftest import words

STEPS = [(name, step) for name in list_experiments() for step in read_experiment(name).steps]
NAS_EXT = [pair for pair in STEPS if words(*pair)[0] == "nas-ext"]
FAIRSEQ = [pair for pair in STEPS if words(*pair)[0].startswith("fairseq-")]

ADAM = {"optimizer": "adam", "adam_betas": "(0.9,0.98)", "weight_decay": 0.0, "label_smoothing": 0.1}
HAT = ADAM | {
    "lr": [5e-4], "lr_scheduler": "inverse_sqrt", "warmup_updates": 10_000, "max_update": 50_000, "weight_decay": 1e-4,
    "max_tokens": 4096, "update_freq": [1], "clip_norm": 0.0, "dropout": 0.375, "attention_dropout": 0.0,
    "extremes": "hat", "share_all_embeddings": False,
}  # fmt: skip
MOS = ADAM | {
    "lr": [1e-3], "lr_scheduler": "cosine", "warmup_updates": 10_000, "max_update": 40_000, "min_lr": 1e-7,
    "max_tokens": 4096, "update_freq": [16], "clip_norm": 0.0, "dropout": 0.3, "attention_dropout": 0.1,
    "extremes": "hat", "share_all_embeddings": True,
}  # fmt: skip
RELATIVE = {"normalize_before": True, "max_relative_length": 8, "share_all_embeddings": True, "dropout": 0.3,
            "attention_dropout": 0.1, "activation_dropout": 0.1, "lr_scheduler": "inverse_sqrt"}  # fmt: skip
MFORMER = ADAM | RELATIVE | {
    "adam_betas": "(0.9,0.998)", "weight_decay": 0.1, "lr": [7e-4], "warmup_updates": 4000, "max_update": 200_000,
    "max_tokens": 4400, "update_freq": [1], "stop_min_lr": 1e-9, "extremes": "space",
}  # fmt: skip
RANKNAS = ADAM | RELATIVE | {
    "lr": [1e-3], "warmup_updates": 8000, "max_update": 50_000, "max_tokens": 4096, "update_freq": [16],
}  # fmt: skip
SANDWICH, SINGLE = {"supernet_sampling": "sandwich"}, {"supernet_sampling": "spos"}
WMT, LAST_TEN = {"beam": 4, "lenpen": 0.6, "batch_size": 128}, {"keep_last_epochs": 10}
NAMED: dict[tuple[str, str], dict[str, Any]] = {
    ("hat_iwslt14_de_en", "supernet"): HAT | SINGLE | {"architecture_draw": "hat", "select_checkpoint": "smallest"},
    ("hat_iwslt14_de_en", "retrain"): HAT | LAST_TEN | {"warmup_updates": 4000},
    ("hat_iwslt14_de_en", "translate"): {"beam": 5, "lenpen": 1.0, "batch_size": 128},
    ("mos_wmt14_en_de", "supernet"): MOS | SANDWICH | {"mos": "neuron", "mos_experts": 2, "lr_period_updates": 30_000},
    ("mos_wmt14_en_de", "further"): MOS | {"warmup_updates": 4000, "lr_period_updates": 36_000},
    ("mos_wmt14_en_de", "translate"): WMT,
    ("mformer_wmt14_en_de", "supernet"): MFORMER | SINGLE,
    ("mformer_wmt14_en_de", "retrain"): MFORMER | LAST_TEN,
    ("mformer_wmt14_en_de", "published"): MFORMER | LAST_TEN,
    ("mformer_wmt14_en_de", "translate"): WMT,
    ("ranknas_wmt14_en_de", "supernet"): RANKNAS | SINGLE,
    ("ranknas_wmt14_en_de", "retrain"): RANKNAS | LAST_TEN,
    ("ranknas_wmt14_en_de", "translate"): WMT,
}
"""What papers and released codes name, after the defaults of the architecture."""


def command_of(name: str) -> Any:
    """What ``nas-ext NAME`` is for its library of options."""
    module = importlib.import_module(next(one.module for one in (*COMMANDS, *LAB) if one.name == name))
    if hasattr(module, "app"):
        return typer.main.get_command(module.app)
    app = typer.Typer()
    app.command()(module.make_command() if hasattr(module, "make_command") else module.command)
    return typer.main.get_command(app)


@pytest.mark.parametrize(("name", "step"), NAS_EXT)
def test_nas_ext(name: str, step: str) -> None:
    _, first, *rest = [word for word in words(name, step) if word != "lab"]
    command = command_of(first)
    if hasattr(command, "commands"):
        command, rest = command.commands[rest[0]], rest[1:]
    context = command.make_context(first, rest)
    if first == "search":
        assert context.params["set"]
        config_of(context.params["strategy"], read_pairs("set", context.params["set"]))
    assert context.params


@pytest.mark.fairseq
@pytest.mark.parametrize(("name", "step"), FAIRSEQ)
def test_fairseq(name: str, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fairseq")
    from fairseq import options

    program, *rest = words(name, step)
    monkeypatch.setattr(sys, "argv", [program, *rest])
    training = program == "fairseq-train"
    parser = options.get_training_parser() if training else options.get_generation_parser()
    result = vars(options.parse_args_and_arch(parser, input_args=rest))
    expected = NAMED[name, step]
    assert {option: result.get(option) for option in expected} == expected
    assert "--user-dir" in rest  # which leaves no sentence out


def test_averages_and_images_have_parsers_of_their_own() -> None:
    rest = [pair for pair in STEPS if pair not in NAS_EXT and pair not in FAIRSEQ]
    assert {words(*pair)[2] for pair in rest} == {"examples.papers.average", "timm_ext.train"}
