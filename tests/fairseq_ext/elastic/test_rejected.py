"""Networks of fairseq's without an elastic form: one line, before anything is built."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY

from fairseq_ext.elastic.trained import name_around
from nas_core.cli import main
from nas_core.errors import CheckpointError, ConfigError, DataError, SpaceError
from nas_core.space import get_space, save_space
from nas_core.supernet.host import open_trained

SIDES = {
    "transformer": ("translation", "decoder"),
    "transformer_lm": ("language_modeling", "decoder"),
    "roberta": ("masked_lm", "encoder"),
}
"""Model -> task, and a side."""


def saved(path: Path, arch: str = "transformer", task: str | None = None, **options: Any) -> Path:
    """A checkpoint of settings alone; names with a prefix ``task_`` are options of the task."""
    model_options = {name: value for name, value in options.items() if not name.startswith("task_")}
    args = Namespace(**{"arch": arch, **model_options})
    ARCH_CONFIG_REGISTRY[arch](args)
    groups = {"model": args, "task": {"_name": task or SIDES[arch][0], "data": "nowhere"}, "common": {}}
    groups["task"] |= {name.removeprefix("task_"): options[name] for name in options.keys() - model_options.keys()}
    torch.save({"args": None, "cfg": groups, "model": {}, "optimizer_history": []}, path)
    return path


NO_FORM: list[tuple[str, str, dict[str, Any]]] = [
    ("transformer", "--adaptive-softmax-cutoff 5000,20000", {"adaptive_softmax_cutoff": "5000,20000"}),
    ("transformer", "--layernorm-embedding", {"layernorm_embedding": True}),
    ("transformer", "--no-decoder-final-norm", {
        "encoder_normalize_before": True, "decoder_normalize_before": True, "no_decoder_final_norm": True}),
    ("transformer", "--decoder-output-dim 256 where --decoder-embed-dim is 512", {"decoder_output_dim": 256}),
    ("transformer", "--encoder-normalize-before on one side alone", {"encoder_normalize_before": True}),
    ("transformer", "heads of 64 numbers", {"decoder_attention_heads": 4}),
    ("transformer", "--activation-fn linear", {"activation_fn": "linear"}),
    ("transformer", "--left-pad-target", {"task_left_pad_target": True}),
    ("transformer_lm", "--character-embeddings", {"character_embeddings": True}),
    ("transformer_lm", "--output-dictionary-size 8", {"task_output_dictionary_size": 8}),
    ("transformer_lm", "--past-target", {"task_past_target": True}),
    ("roberta", "--mha-heads-to-keep 2", {"mha_heads_to_keep": 2}),
    ("roberta", "positions that are computed", {"encoder_learned_pos": False}),
    ("roberta", "--pooler-activation-fn swish", {"pooler_activation_fn": "swish"}),
]  # fmt: skip


@pytest.mark.parametrize(("arch", "part", "options"), NO_FORM)
def test_a_part_without_an_elastic_form_is_named(arch: str, part: str, options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        open_trained(saved(tmp_path / "a.pt", arch, **options))
    assert part in str(error.value)


def test_options_that_change_nothing_are_accepted(tmp_path: Path) -> None:
    """Without norms before sublayers there is no final norm."""
    with pytest.raises(DataError):  # its data folder is absent
        open_trained(saved(tmp_path / "a.pt", no_decoder_final_norm=True))


@pytest.mark.parametrize("arch", SIDES)
def test_damaged_settings(arch: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    for value in (0, "wide", None, [512], 1e400):
        content = torch.load(saved(path, arch), weights_only=True)
        setattr(content["cfg"]["model"], f"{SIDES[arch][1]}_attention_heads", value)
        torch.save(content, path)
        with pytest.raises((CheckpointError, ConfigError)):
            open_trained(path)
    for group, value in (("model", [1, 2]), ("model", None), ("task", "text"), ("task", None)):
        content = torch.load(saved(path, arch), weights_only=True)
        content["cfg"][group] = value
        torch.save(content, path)
        with pytest.raises((CheckpointError, ConfigError)):
            open_trained(path)


def test_other_models_tasks_and_spaces(tmp_path: Path) -> None:
    save_space(get_space("hat_iwslt14_de_en"), tmp_path / "hat.yml")
    path, signs = tmp_path / "a.pt", {"args": None, "model": {}, "optimizer_history": []}
    supernet = {"cfg": {"model": Namespace(arch="mos_transformer", search_space_json="{}")}, **signs}
    other = {"cfg": {"model": Namespace(arch="fconv_iwslt_de_en")}, **signs}
    for content, options, kind in [
        (supernet, {}, CheckpointError),
        (other, {}, CheckpointError),
        ({"task": "multilingual_translation"}, {}, ConfigError),
        ({"arch": "transformer_lm", "task": "translation"}, {}, ConfigError),
        ({"arch": "roberta", "task": "translation_lev"}, {}, ConfigError),
        ({}, {"space": str(tmp_path / "hat.yml")}, SpaceError),
        ({}, {"attention": ("linear",)}, ConfigError),
    ]:
        if "cfg" in content:
            torch.save(content, path)
        else:
            saved(path, **content)
        with pytest.raises(kind) as error:
            open_trained(path, **options)
        assert "\n" not in str(error.value)


def test_weights_and_data_of_something_else(own_model: Callable[..., Path], joined: Path, tmp_path: Path) -> None:
    content = torch.load(own_model("translation", "post-norm"), weights_only=True)
    content["cfg"]["model"].max_source_positions = "x"
    torch.save(content, tmp_path / "number.pt")
    content = torch.load(own_model("translation", "post-norm"), weights_only=True)
    content["model"].pop("encoder.layers.1.fc1.weight")
    torch.save(content, tmp_path / "weight.pt")
    for name in ("number.pt", "weight.pt"):
        with pytest.raises(CheckpointError):
            open_trained(tmp_path / name, data=str(joined))
    for file in joined.glob("dict.*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    content = torch.load(own_model("translation", "post-norm"), weights_only=True)
    content["cfg"]["task"].update(source_lang="src", target_lang="tgt")
    torch.save(content, tmp_path / "languages.pt")
    with pytest.raises(DataError):
        open_trained(tmp_path / "languages.pt", data=str(tmp_path)).calibration(1)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--importance", "magic"], "criterion of importance (--importance) 'magic'"),
        (["--importance", "activation"], "needs calibration data"),
        (["--calibration-batches", "-1"], "--calibration-batches is -1"),
        (["--attention", "softmax,linear"], "give --calibration-batches"),
        (["--attention", "softmax,linnear"], "linnear"),
        (["--space", "attention"], "give --attention"),
        (["--attention", "linear", "--calibration-batches", "1"], "add softmax"),
        (["--attention", "softmax,linear", "--calibration-batches", "1", "--space", "mformer_translation_small"],
         "choose attention in that space"),
    ],
)  # fmt: skip
def test_options_of_the_command(
    options: list[str], part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path / "a.pt")
    assert main(["elastic", "--checkpoint", str(path), "--out", str(tmp_path / "s.pt"), *options]) == 2
    error = capsys.readouterr().err
    assert part in error and error.count("\n") == 1 and not (tmp_path / "s.pt").exists()


def test_names() -> None:
    for path, name in [
        ("model.pt", "around-model"),
        ("wmt/checkpoint_best.pt", "around-wmt"),
        ("a/checkpoints/checkpoint_last.pt", "around-a"),
        ("/checkpoint_last.pt", "around-checkpoint"),
    ]:
        assert name_around(Path(path)) == name
