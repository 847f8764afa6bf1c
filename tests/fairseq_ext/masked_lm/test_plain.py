"""Subnets as checkpoints of fairseq's own ``--arch roberta``, loaded by a process that knows nothing of this project,
and networks that are not taken over."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_ext.checkpoint import read_state
from nas_core.cli import main
from nas_core.errors import ConfigError, NasExtError
from nas_core.space import Architecture
from nas_core.supernet import open_supernet, open_trained
from nas_core.supernet.elastic import take_over
from tests.fairseq_ext.distillation.teachers import as_taught, left_of_teacher
from tests.fairseq_ext.masked_lm.training import FORMS, MASKED, PLAIN
from tests.fairseq_ext.running import quiet_environment, run

Roberta = Callable[..., Path]
WITHOUT_THE_PROJECT = """
import json, sys
import torch
from fairseq import checkpoint_utils
tokens, found, criteria = torch.tensor(json.loads(sys.argv[1])), [], []
for data, head, path in zip(*[iter(sys.argv[2:])] * 3):
    (model,), settings, task = checkpoint_utils.load_model_ensemble_and_task([path], arg_overrides={"data": data})
    criteria.append(type(task.build_criterion(settings.criterion)).__name__)
    with torch.no_grad():
        found.append(model.eval()(tokens, classification_head_name=head or None)[0].tolist())
ours = sorted(name for name in sys.modules if name.split(".")[0] in ("fairseq_ext", "nas_core"))
print(json.dumps({"logits": found, "ours": ours, "criteria": criteria}))
"""
TOKENS = torch.tensor([[0, 7, 5, 9, 2, 1], [0, 4, 6, 10, 11, 2]])
HEAD = "sentence_classification_head"


def narrow(space: Any, **genes: Any) -> Architecture:
    """Width 12 with three heads of 4 numbers, one layer."""
    own = {"embed_dim": 12, "layers": 1, "ffn_dim": [18], "heads": [3]}
    architecture: Architecture = space.validate(Architecture({**space.largest().to_dict(), **own, **genes}))
    return architecture


@pytest.fixture(scope="module")
def supernets(
    roberta: Roberta, text: Path, labelled: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Path, str, Path]]:
    """Name -> supernet, classification head, data."""
    folder = tmp_path_factory.mktemp("supernets")
    made = {name: (roberta(*FORMS[name]), "", text) for name in FORMS}
    made["classifier"] = (roberta(task="sentence_prediction"), HEAD, labelled)
    for name, (path, head, data) in made.items():
        trained = open_trained(path, data=str(data), calibrate=1)
        take_over(trained, folder / f"{name}.pt", importance_by="activation", calibrate=1)
        if not head:
            as_taught(folder / f"{name}.pt", "distilled_masked_lm")
        made[name] = folder / f"{name}.pt", head, data
    return made


def extracted(supernet: Path, architecture: Architecture, folder: Path) -> Path:
    architecture.save(folder / "narrow.json")
    out = folder / f"plain-{supernet.name}"
    command = ["extract", "--checkpoint", supernet, "--arch", folder / "narrow.json", "--out", out, "--plain"]
    assert main([*map(str, command)]) == 0
    return out


def test_fairseq_alone_computes_the_same(supernets: dict[str, tuple[Path, str, Path]], tmp_path: Path) -> None:
    given: list[str] = []
    expected = []
    for path, head, data in supernets.values():
        supernet: Any = open_supernet(path)
        architecture = narrow(supernet.space)
        supernet.extract(architecture, tmp_path / "subnet.pt")
        assert left_of_teacher(tmp_path / "subnet.pt") == ("sentence_prediction" if head else "masked_lm", set())
        given += [str(data), head, str(extracted(path, architecture, tmp_path))]
        with torch.no_grad(), supernet.model.using(architecture):
            expected.append(supernet.model(TOKENS, classification_head_name=head or None)[0])
    environment = {name: value for name, value in quiet_environment().items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", WITHOUT_THE_PROJECT, json.dumps(TOKENS.tolist()), *given]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert set(found["ours"]) <= {"nas_core", "nas_core.torchvision_fix"}, "more than what every python starts with"
    assert found["criteria"] == ["MaskedLmLoss"] * len(FORMS) + ["SentencePredictionCriterion"]
    read = TOKENS.ne(1)
    for name, logits, wanted in zip(supernets, map(torch.tensor, found["logits"]), expected, strict=True):
        assert logits.shape == wanted.shape
        difference = (logits - wanted)[read if wanted.ndim == 3 else slice(None)].abs().max() / wanted.abs().max()
        assert float(difference) <= 1e-5, name


def test_it_is_trained_by_fairseq_and_taken_over_again(
    supernets: dict[str, tuple[Path, str, Path]], tmp_path: Path, text: Path
) -> None:
    path, _, data = supernets["prenorm"]
    plain = extracted(path, narrow(open_supernet(path).space), tmp_path)
    again = open_trained(plain, data=str(data))
    assert again.difference(again.net) <= 1e-5 and again.space.largest()["embed_dim"] == 12
    sizes = ["--encoder-layers", 1, "--encoder-embed-dim", 12, "--encoder-ffn-embed-dim", 18]
    options = [*sizes, "--encoder-attention-heads", 3, "--arch", "roberta_prenorm", "--activation-fn", "gelu_accurate"]
    done = run("train", text, "--task", "masked_lm", *MASKED, *PLAIN, *options, "--finetune-from-model", plain,
               "--save-dir", tmp_path / "run")  # fmt: skip
    assert done.code == 0, (done.err, done.out[-2000:])


@pytest.mark.parametrize(
    ("genes", "said"),
    [
        ({"layers": 2, "ffn_dim": [18, 24], "heads": [3, 3]}, "ffn_dim is 18, 24, in fairseq all are equal"),
        ({"heads": [2]}, "queries are 8 wide, channels 12; in fairseq both are equal"),
    ],
)
def test_what_is_not_alike_is_said(
    genes: dict[str, Any],
    said: str,
    supernets: dict[str, tuple[Path, str, Path]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = supernets["base"][0]
    narrow(open_supernet(path).space, **genes).save(tmp_path / "a.json")
    command = ["extract", "--checkpoint", path, "--arch", tmp_path / "a.json", "--out", tmp_path / "a.pt", "--plain"]
    assert main(list(map(str, command))) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1 and not (tmp_path / "a.pt").exists()


# -- what is not taken over --------------------------------------------------------------------------------------------


def changed(path: Path, folder: Path, task: str | None = None, **options: Any) -> Path:
    content = torch.load(path, weights_only=True)
    vars(content["cfg"]["model"]).update(options)
    if task:
        content["cfg"]["task"]["_name"] = task
    torch.save(content, folder / "changed.pt")
    return folder / "changed.pt"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"quant_noise_pq": 0.1}, "--quant-noise-pq 0.1, which has no elastic form"),
        ({"quant_noise_scalar": 0.5}, "--quant-noise-scalar 0.5"),
        ({"spectral_norm_classification_head": True}, "--spectral-norm-classification-head, which has"),
        ({"encoder_layers_to_keep": "0,2"}, "--encoder-layers-to-keep 0,2"),
        ({"mha_heads_to_keep": 2}, "--mha-heads-to-keep 2"),
        ({"encoder_learned_pos": False}, "positions that are computed"),
        ({"activation_fn": "linear"}, "--activation-fn linear, which has no elastic form; expected one of relu"),
        ({"pooler_activation_fn": "swish"}, "--pooler-activation-fn swish"),
        ({"encoder_layers": 0}, "trained with 0 layers of "),
        ({"arch": "roberta_enc_dec"}, "a model 'roberta_enc_dec'; expected one of"),
        ({"task": "translation_lev"}, "was trained with --task translation_lev; expected masked_lm"),
    ],
)
def test_parts_without_an_elastic_form_are_named_before_any_work(
    options: dict[str, Any], said: str, roberta: Roberta, tmp_path: Path, text: Path
) -> None:
    path = changed(roberta(), tmp_path, **options)
    with pytest.raises(NasExtError, match=said.replace("(", r"\(")) as caught:
        open_trained(path, data=str(text))
    assert "\n" not in str(caught.value)


def test_a_network_of_several_languages_is_taken_over(roberta: Roberta, tmp_path: Path, text: Path) -> None:
    path = changed(roberta(), tmp_path, task="multilingual_masked_lm")
    trained = open_trained(path, data=str(text))
    assert trained.difference(trained.net) <= 1e-5


def test_linear_attention_may_be_chosen_and_softmax_must_be(roberta: Roberta, tmp_path: Path, text: Path) -> None:
    trained = open_trained(roberta(), data=str(text), attention=("softmax", "linear", "local"))
    assert trained.difference(trained.net) <= 1e-5
    take_over(trained, tmp_path / "out.pt", importance_by="weight", calibrate=1, fit_steps=3)
    supernet: Any = open_supernet(tmp_path / "out.pt")
    linear = Architecture({**supernet.space.largest().to_dict(), "attention": ["linear", "local"]})
    assert supernet.evaluate(linear)["loss"] != supernet.evaluate(supernet.space.largest())["loss"]
    with pytest.raises(ConfigError, match="softmax must be among them"):
        open_trained(roberta(), data=str(text), attention=("linear",))


def test_the_command_tells_what_it_made(
    roberta: Roberta, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["elastic", "--checkpoint", roberta(), "--out", tmp_path / "s.pt", "--data", text, "--calibrate", 2]
    assert main([*map(str, command), "--mos", "neuron"]) == 0
    said = capsys.readouterr().out
    assert (
        "architectures" in said and "axes sorted by activation" in said and "layers, the first to be left out" in said
    )
    args = read_state(tmp_path / "s.pt")["cfg"]["model"]
    assert isinstance(args, Namespace) and sorted(args.layer_order) == [0, 1] and args.mos == "neuron"
