"""What of fairseq's transformers has no elastic form is named in one line, before anything is built."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY

from nas_core.cli import main
from nas_core.errors import CheckpointError, ConfigError, DataError, SpaceError
from nas_core.space import get_space, save_space
from nas_core.supernet import open_trained

REFUSED: dict[str, dict[str, Any]] = {
    "--adaptive-softmax-cutoff 5000,20000": {"adaptive_softmax_cutoff": "5000,20000"},
    "--adaptive-input": {"adaptive_input": True},
    "--tie-adaptive-weights": {"tie_adaptive_weights": True},
    "--layernorm-embedding": {"layernorm_embedding": True},
    "--merge-src-tgt-embed": {"merge_src_tgt_embed": True},
    "--no-cross-attention": {"no_cross_attention": True},
    "--cross-self-attention": {"cross_self_attention": True},
    "--char-inputs": {"char_inputs": True},
    "--base-layers 2": {"base_layers": 2},
    "--scale-heads": {"scale_heads": True},
    "--quant-noise-pq 0.1": {"quant_noise_pq": 0.1},
    "--encoder-xformers-att-config": {"encoder_xformers_att_config": "{}"},
    "--decoder-layers-to-keep 0,2": {"decoder_layers_to_keep": "0,2"},
    "--no-decoder-final-norm": {
        "encoder_normalize_before": True,
        "decoder_normalize_before": True,
        "no_decoder_final_norm": True,
    },
    "--decoder-output-dim 256 where --decoder-embed-dim is 512": {"decoder_output_dim": 256},
    "--encoder-normalize-before on one side alone": {"encoder_normalize_before": True},
    "--decoder-learned-pos on one side alone": {"decoder_learned_pos": True},
    "6 encoder layers with heads of 64 numbers and 6 decoder layers with heads of 128": {"decoder_attention_heads": 4},
    "--activation-fn linear": {"activation_fn": "linear"},
}


def saved(path: Path, task: str = "translation", arch: str = "transformer", **options: Any) -> Path:
    """A checkpoint of settings alone."""
    args = Namespace(arch=arch, **options)
    ARCH_CONFIG_REGISTRY[arch](args)
    groups = {"model": args, "task": {"_name": task, "data": "nowhere"}, "common": {}}
    torch.save({"args": None, "cfg": groups, "model": {}, "optimizer_history": []}, path)
    return path


@pytest.mark.parametrize("said", REFUSED)
def test_an_option_without_an_elastic_form(said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        open_trained(saved(tmp_path / "a.pt", **REFUSED[said]))
    assert said in str(error.value) and "has no elastic form" in str(error.value)


def test_final_norms_that_are_not_there_anyway_are_no_matter(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no data folder nowhere"):
        open_trained(saved(tmp_path / "a.pt", no_decoder_final_norm=True))


def test_another_task(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--task multilingual_translation; expected translation"):
        open_trained(saved(tmp_path / "a.pt", task="multilingual_translation"))


def test_padding_on_the_left_of_targets(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.pt")
    content = torch.load(path, weights_only=False)
    content["cfg"]["task"]["left_pad_target"] = True
    torch.save(content, path)
    with pytest.raises(ConfigError, match="--left-pad-target"):
        open_trained(path)


def test_a_space_of_other_sizes(tmp_path: Path) -> None:
    save_space(get_space("hat_iwslt14_de_en"), tmp_path / "hat.yml")
    with pytest.raises(SpaceError, match=r"space .* has encoder.embed_dim = 640, the trained one 512"):
        open_trained(saved(tmp_path / "a.pt"), space=str(tmp_path / "hat.yml"))


def test_attention_without_softmax(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="softmax must be among them"):
        open_trained(saved(tmp_path / "a.pt"), attention=("linear",))


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["elastic", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_command_says_what_it_made(
    transformer: Callable[..., Path], joined: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--checkpoint", transformer(), "--out", tmp_path / "s.pt", "--data", joined, "--calibrate", 2]
    code, out, err = command(capsys, *given, "--mos", "neuron", "--attention", "softmax,linear", "--fit", 1)
    assert code == 0, err
    lines = out.splitlines()
    assert "architectures, 0.00 to 0.01 M parameters without embeddings" in lines[0]
    assert "axes sorted by activation on 2 batches" in lines[1]
    assert sum("linear differs from the trained attention by" in line for line in lines[2:8]) == 6
    assert lines[8].startswith("encoder layers, the first to be left out first: ")
    assert "of the largest output" in lines[10] and lines[11].endswith(" s")
    content = (tmp_path / "s.pt").read_bytes()
    code, _, err = command(capsys, *given)
    assert code == 2 and "exists" in err and err.count("\n") == 1 and (tmp_path / "s.pt").read_bytes() == content


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--importance", "magic"], "criterion of --importance 'magic'"),
        (["--importance", "activation"], "needs calibration data"),
        (["--mos", "magic"], "--mos 'magic'"),
        (["--calibrate", "-1"], "--calibrate -1"),
        (["--attention", "softmax,linear"], "--fit 0"),
    ],
)
def test_options_that_cannot_work(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path / "a.pt")
    code, _, err = command(capsys, "--checkpoint", path, "--out", tmp_path / "s.pt", *options)
    assert code == 2 and said in err and err.count("\n") == 1 and not (tmp_path / "s.pt").exists()


def test_a_split_without_a_sentence_that_is_read(
    transformer: Callable[..., Path], joined: Path, tmp_path: Path
) -> None:
    for name in joined.iterdir():
        if name.name.startswith("dict."):
            (tmp_path / name.name).write_bytes(name.read_bytes())
    trained = open_trained(transformer("--source-lang", "src", "--target-lang", "tgt"), data=str(tmp_path))
    with pytest.raises(DataError, match="no split 'train' or 'valid'"):
        trained.calibration(1)


SOURCES = {
    "transformer": ("translation", "decoder"),
    "transformer_lm": ("language_modeling", "decoder"),
    "roberta": ("masked_lm", "encoder"),
}


@pytest.mark.parametrize("arch", SOURCES)
@pytest.mark.parametrize("value", [0, -1, "wide", None, [512], 1e400, {"a": 1}], ids=repr)
@pytest.mark.parametrize("option", ["attention_heads", "embed_dim", "ffn_embed_dim", "layers"])
def test_sizes_that_are_none(arch: str, option: str, value: Any, tmp_path: Path) -> None:
    task, side = SOURCES[arch]
    path = saved(tmp_path / "a.pt", task, arch)
    content = torch.load(path, weights_only=True)
    setattr(content["cfg"]["model"], f"{side}_{option}", value)
    torch.save(content, path)
    with pytest.raises((CheckpointError, ConfigError), match=r"damaged settings|has no elastic form"):
        open_trained(path)


@pytest.mark.parametrize(
    ("arch", "option"),
    [("transformer", "decoder_layerdrop"), ("transformer", "max_source_positions"), ("roberta", "max_positions")],
)
def test_numbers_that_are_none(arch: str, option: str, transformer: Callable[..., Path], joined: Path,
                               tmp_path: Path) -> None:  # fmt: skip
    path = transformer() if arch == "transformer" else saved(tmp_path / "a.pt", SOURCES[arch][0], arch)
    content = torch.load(path, weights_only=True)
    model = content["cfg"]["model"]
    model.update({option: "x"}) if isinstance(model, dict) else setattr(model, option, "x")
    torch.save(content, tmp_path / "damaged.pt")
    with pytest.raises(CheckpointError, match=r"damaged settings|does not fit its own settings"):
        open_trained(tmp_path / "damaged.pt", data=str(joined))


@pytest.mark.parametrize("arch", SOURCES)
@pytest.mark.parametrize("value", [[1, 2], "text", 3, None], ids=repr)
@pytest.mark.parametrize("group", ["model", "task"])
def test_groups_of_settings_that_are_none(arch: str, group: str, value: Any, tmp_path: Path) -> None:
    path = saved(tmp_path / "a.pt", SOURCES[arch][0], arch)
    content = torch.load(path, weights_only=True)
    content["cfg"][group] = value
    torch.save(content, path)
    with pytest.raises((CheckpointError, ConfigError), match=r"a\.pt (has damaged|holds no|was trained with)"):
        open_trained(path)


def test_weights_that_are_not_those_of_the_settings(
    transformer: Callable[..., Path], joined: Path, tmp_path: Path
) -> None:
    content = torch.load(transformer(), weights_only=True)
    content["model"].pop("encoder.layers.1.fc1.weight")
    torch.save(content, tmp_path / "damaged.pt")
    with pytest.raises(CheckpointError, match="does not fit its own settings"):
        open_trained(tmp_path / "damaged.pt", data=str(joined))
