"""``nas-ext export`` of fairseq's RoBERTa: values are fairseq's, files need neither fairseq nor this project."""

from __future__ import annotations

import random
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.models.roberta import RobertaModel
from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask
from fairseq.tasks.sentence_prediction import SentencePredictionConfig, SentencePredictionTask

from fairseq_ext.masked_lm import Encoder, check_supported
from nas_core.cli import main
from nas_core.errors import CheckpointError, ConfigError
from nas_core.export import open_exportable
from nas_core.files import read_json
from nas_core.supernet import open_supernet
from tests.fairseq_ext.running import run, subnet

LONGEST, PAD, HEAD = 12, 1, "sentence_classification_head"
VARIANTS: dict[str, dict[str, Any]] = {
    "base": {},
    "relu, untied": {"activation_fn": "relu", "untie_weights_roberta": True},
    "norm first": {"encoder_normalize_before": True, "activation_fn": "gelu_accurate"},
    "prenorm": {"arch": "roberta_prenorm"},
    "scaled, layerdrop": {"no_scale_embedding": False, "encoder_layerdrop": 0.5},
}


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data folder of both tasks: 16 words that were counted, two labels."""
    folder = tmp_path_factory.mktemp("bert")
    dictionary, labels = Dictionary(), Dictionary()
    for number in range(16):
        dictionary.add_symbol(f"w{number}", 20 - number)
    for label in ("no", "yes"):
        labels.add_symbol(label, 5)
    for below in ("input0", "label"):
        (folder / below).mkdir()
    dictionary.save(str(folder / "dict.txt"))
    dictionary.save(str(folder / "input0" / "dict.txt"))
    labels.save(str(folder / "label" / "dict.txt"))
    return folder


def build(words: Path, classify: bool = False, **options: Any) -> tuple[RobertaModel, Any]:
    """A tiny network whose weights are large enough to tell positions apart, and its task."""
    sizes = {"encoder_layers": 2, "encoder_embed_dim": 16, "encoder_ffn_embed_dim": 24, "encoder_attention_heads": 4}
    args = Namespace(**{"arch": "roberta_base", "max_positions": LONGEST, **sizes, **options})
    ARCH_CONFIG_REGISTRY[args.arch](args)
    torch.manual_seed(2)
    if classify:
        shared = {"regression_target": False, "classification_head_name": HEAD, "seed": 1}
        config = SentencePredictionConfig(data=str(words), num_classes=2, init_token=0, max_positions=LONGEST, **shared)
        task = SentencePredictionTask.setup_task(config)
    else:
        task = MaskedLMTask.setup_task(MaskedLMConfig(data=str(words), tokens_per_sample=LONGEST, seed=1))
    model = task.build_model(args)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
        model.encoder.sentence_encoder.embed_tokens.weight[PAD] = 0.7  # must not count
    return model.eval(), task


def save(model: RobertaModel, task: Any, path: Path, **task_settings: Any) -> Path:
    """As fairseq's trainer writes it."""
    kind = "masked_lm" if isinstance(task, MaskedLMTask) else "sentence_prediction"
    model.args.task = kind
    settings = {**vars(task.cfg), "_name": kind, **task_settings}
    state = {
        "args": None,
        "cfg": {"model": model.args, "task": settings, "criterion": {"_name": kind}},
        "model": model.state_dict(),
        "criterion": None,
        "optimizer_history": [{"num_updates": 3, "criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}}],
        "task_state": {},
        "extra_state": {},
        "last_optimizer_state": None,
    }
    checkpoint_utils.torch_persistent_save(state, str(path))
    return path


def sentences(vocabulary: int, seed: int = 0) -> torch.Tensor:
    """Padding to the right, to the left, inside, and none."""
    stream = torch.Generator().manual_seed(seed)
    tokens = torch.randint(4, vocabulary, (4, 9), generator=stream)
    tokens[0, 5:] = PAD
    tokens[1, :3] = PAD
    tokens[2, 4] = PAD
    return tokens


def theirs(model: RobertaModel, tokens: torch.Tensor, head: str | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.no_grad():
        features, _ = model(tokens, features_only=True)
        logits, _ = model(tokens, classification_head_name=head)
    return features, logits


@pytest.mark.parametrize("name", VARIANTS)
def test_values_are_fairseqs(name: str, words: Path) -> None:
    model, task = build(words, **VARIANTS[name])
    check_supported(model)
    module = Encoder(model, None).eval()
    tokens = sentences(len(task.source_dictionary))
    for given in (tokens, tokens[3:], tokens[:, :1].clamp(min=4)):  # all kinds of padding, and none
        with torch.no_grad():
            found = module(given)
        for ours, wanted in zip(found, theirs(model, given), strict=True):
            torch.testing.assert_close(ours, wanted, atol=2e-5, rtol=1e-4)
    spread = theirs(model, tokens)[1].std((0, 1)).mean()
    assert spread > 0.1, "the comparison would not notice a difference"


def test_padding_behind_a_sentence_changes_nothing(words: Path) -> None:
    model, task = build(words)
    module = Encoder(model, None)
    tokens = sentences(len(task.source_dictionary))[3:, :6]
    longer = torch.cat([tokens, torch.full((1, 4), PAD)], 1)
    with torch.no_grad():
        torch.testing.assert_close(module(longer)[1][:, :6], module(tokens)[1], atol=1e-5, rtol=1e-4)
        assert all(torch.isfinite(out).all() for out in module(torch.full((2, 3), PAD)))


# -- files -------------------------------------------------------------------------------------------------------------

WITHOUT = """
import json, sys
class Absent:
    def find_spec(self, name, *rest):
        if name.split(".")[0] in {absent}:
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
import numpy as np
folder = {folder!r}
model = json.load(open(folder + "/model.json"))
file, tokens = folder + "/" + model["parts"]["encoder"]["file"], np.load({tokens!r})
"""
READERS = {
    "onnx": (
        ("fairseq", "fairseq_ext", "nas_core", "torch", "onnx"),
        "import onnxruntime\n"
        "session = onnxruntime.InferenceSession(file, providers=['CPUExecutionProvider'])\n"
        "features, logits = session.run(['features', 'logits'], {'tokens': tokens})",
    ),
    "torch-export": (
        ("fairseq", "fairseq_ext", "nas_core"),
        "import torch\n"
        "program = torch.export.load(file).module()\n"
        "features, logits = (x.detach().numpy() for x in program(torch.from_numpy(tokens)))",
    ),
}


def elsewhere(to: str, folder: Path, tokens: torch.Tensor, scratch: Path) -> tuple[np.ndarray, np.ndarray]:
    """Features and logits by a program that can import nothing of fairseq and of this project."""
    absent, read = READERS[to]
    np.save(scratch / "tokens.npy", tokens.numpy())
    code = WITHOUT.format(absent=absent, folder=str(folder), tokens=str(scratch / "tokens.npy")) + read
    code += f"\nnp.savez({str(scratch / 'out.npz')!r}, features=features, logits=logits)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = np.load(scratch / "out.npz")
    return found["features"], found["logits"]


def export(checkpoint: Path, out: Path, *more: str) -> int:
    return main(["export", "--checkpoint", str(checkpoint), "--out", str(out), *more])


@pytest.mark.onnx
@pytest.mark.parametrize(("to", "head"), [("onnx", None), ("torch-export", None), ("onnx", HEAD)])
def test_exported_files(to: str, head: str | None, words: Path, tmp_path: Path) -> None:
    if to == "onnx":
        for name in ("onnx", "onnxruntime", "onnxscript"):
            pytest.importorskip(name, reason=f"{name} is not installed")
    model, task = build(words, classify=head is not None, untie_weights_roberta=to == "onnx")
    out = tmp_path / "out"
    assert export(save(model, task, tmp_path / "c.pt"), out, "--to", to) == 0
    tokens = sentences(len(task.source_dictionary), seed=5)
    found = elsewhere(to, out, tokens, tmp_path)
    for ours, wanted in zip(found, theirs(model, tokens, head), strict=True):
        np.testing.assert_allclose(ours, wanted.numpy(), atol=1e-4, rtol=1e-4)
    info = read_json(out / "model.json")
    assert info["tokens"] == {"bos": 0, "pad": PAD, "eos": 2, "unk": 3, "mask": len(task.source_dictionary) - 1}
    assert info["architecture"] == open_exportable(tmp_path / "c.pt").space.largest().to_dict()
    assert info["architecture"]["encoder.ffn_dim"] == 24 and info["vocabulary"] == len(task.source_dictionary)
    assert info["limits"] == {"tokens": LONGEST} and info["parts"]["encoder"]["largest"] == {"length": LONGEST}
    listed = [line.rsplit(" ", 1)[0] for line in (out / "dict.txt").read_text().splitlines()]
    assert listed == task.source_dictionary.symbols[info["dictionary_first_index"] :]
    assert info["kind"] == ("masked_lm" if head is None else "sentence_prediction")
    assert info.get("classes") == (None if head is None else ["no", "yes"])


def test_a_checkpoint_of_fairseq_train(tmp_path: Path) -> None:
    """Trained, not built: settings are where fairseq puts them, names come from the command."""
    stream = random.Random(1)
    for split, count in (("train", 60), ("valid", 8)):
        lines = [" ".join(f"w{stream.randrange(20)}" for _ in range(stream.randint(2, 9))) for _ in range(count)]
        (tmp_path / split).write_text("\n".join(lines) + "\n")
    prefixes = ["--trainpref", tmp_path / "train", "--validpref", tmp_path / "valid"]
    assert run("preprocess", "--only-source", *prefixes, "--destdir", tmp_path / "bin", "--workers", 1).code == 0
    done = run(
        "train", tmp_path / "bin", "--task", "masked_lm", "--criterion", "masked_lm", "--arch", "roberta_base",
        "--encoder-layers", 1, "--encoder-embed-dim", 8, "--encoder-ffn-embed-dim", 12, "--encoder-attention-heads", 2,
        "--tokens-per-sample", LONGEST, "--sample-break-mode", "complete", "--optimizer", "adam", "--lr", 0.01,
        "--batch-size", 8, "--max-update", 2, "--cpu", "--num-workers", 0, "--save-dir", tmp_path / "saved",
        "--no-epoch-checkpoints", "--required-batch-size-multiple", 1,
    )  # fmt: skip
    assert done.code == 0, done.err
    checkpoint = tmp_path / "saved" / "checkpoint_last.pt"
    assert export(checkpoint, tmp_path / "out", "--to", "torch-export") == 0
    assert read_json(tmp_path / "out" / "model.json")["limits"] == {"tokens": LONGEST}
    with pytest.raises(CheckpointError, match="no checkpoint of --arch mos_transformer"):
        open_supernet(checkpoint)


# -- wrong input -------------------------------------------------------------------------------------------------------


@pytest.fixture
def refused(words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """``refused(checkpoint, ...)``: the one line of an export that failed and left nothing."""

    def call(checkpoint: Path, *more: str) -> str:
        out = tmp_path / "refused"
        assert export(checkpoint, out, "--to", "torch-export", *more) == 2
        assert not out.exists()
        (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("nas-ext")]
        return line

    return call


def test_wrong_input_is_one_line(words: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    checkpoint = save(*build(words), tmp_path / "c.pt")
    cut, empty, other = tmp_path / "cut.pt", tmp_path / "empty", tmp_path / "other"
    cut.write_bytes(checkpoint.read_bytes()[:-2000])
    for folder in (empty, other):
        folder.mkdir()
    (other / "dict.txt").write_text("w0 1\n")
    subnet().save(tmp_path / "translation.json")
    assert "is not a checkpoint" in refused(cut)
    assert "no data folder" in refused(checkpoint, "--data", str(tmp_path / "none"))
    assert "dict.txt" in refused(checkpoint, "--data", str(empty))
    assert "size mismatch" in (line := refused(checkpoint, "--data", str(other))) and f"{other} is not" in line
    assert "roberta" in refused(checkpoint, "--arch", str(tmp_path / "translation.json"))


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("quant_noise_pq", 0.1, "--quant-noise-pq 0.1"), ("encoder_learned_pos", False, "Sinusoidal")],
)
def test_settings_that_are_not_exported(
    option: str, value: Any, said: str, words: Path, tmp_path: Path, refused: Callable[..., str]
) -> None:
    model, task = build(words, **{option: value})
    with pytest.raises(ConfigError, match=said):
        check_supported(model)
    assert said in refused(save(model, task, tmp_path / "c.pt"))


def test_settings_of_fairseq_hydra_train(words: Path, tmp_path: Path) -> None:
    """They hold the model's options as plain data, under its name."""
    model, task = build(words)
    path = save(model, task, tmp_path / "c.pt")
    state = torch.load(path, weights_only=True)
    state["cfg"]["model"] = {**vars(model.args), "_name": "roberta"}
    torch.save(state, path)
    (part,) = (opened := open_exportable(path)).exportable(opened.space.largest()).parts
    tokens = sentences(len(task.source_dictionary))
    torch.testing.assert_close(part.module(tokens)[1], theirs(model, tokens)[1], atol=2e-5, rtol=1e-4)


def test_other_models_and_tasks(words: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    model, task = build(words)
    line = refused(save(model, task, tmp_path / "task.pt", _name="multilingual_masked_lm"))
    assert "multilingual_masked_lm" in line and "masked_lm or sentence_prediction" in line
    model.args.arch = "transformer_lm"
    line = refused(save(model, task, tmp_path / "arch.pt"))
    assert "--arch transformer_lm" in line and "roberta*" in line


@pytest.mark.parametrize("change", ["dropped", "bias dropped", "classes"])
def test_a_head_without_its_weights_is_not_made_up(
    change: str, words: Path, tmp_path: Path, refused: Callable[..., str]
) -> None:
    path = save(*build(words, classify=True), tmp_path / "c.pt")
    state = torch.load(path, weights_only=True)
    weights, prefix = state["model"], f"classification_heads.{HEAD}."
    if change == "classes":
        weights[f"{prefix}out_proj.weight"] = torch.zeros(3, 16)
        weights[f"{prefix}out_proj.bias"] = torch.zeros(3)
    for name in [name for name in weights if name.startswith(prefix)]:
        if change == "dropped" or (change == "bias dropped" and name.endswith("out_proj.bias")):
            del weights[name]
    torch.save(state, path)
    assert f"lacks weights of classification_heads.{HEAD}" in refused(path)


def test_damaged_settings_are_one_line(words: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    path = save(*build(words), tmp_path / "c.pt")
    whole = torch.load(path, weights_only=True)
    torch.save({**whole, "cfg": "none"}, path)
    assert "no settings under 'cfg'" in refused(path)
    task = {name: value for name, value in whole["cfg"]["task"].items() if name != "data"}
    torch.save({**whole, "cfg": {**whole["cfg"], "task": task}}, path)
    assert "no data folder" in refused(path)


def test_classes_are_read_off_the_first_token(words: Path, tmp_path: Path) -> None:
    opened = open_exportable(save(*build(words, classify=True), tmp_path / "c.pt"))
    made = opened.exportable(opened.space.largest())
    tokens = torch.tensor([[0, 5, 6, 2]])
    module = made.parts[0].module
    padded = {side: torch.nn.functional.pad(tokens, pad, value=PAD) for side, pad in (("l", (2, 0)), ("r", (0, 2)))}
    with torch.no_grad():
        alone, left, right = (module(x)[1] for x in (tokens, padded["l"], padded["r"]))
    torch.testing.assert_close(right, alone, atol=1e-5, rtol=1e-4)
    assert (left - alone).abs().max() > 0.01 and made.info["padding"].startswith("right")
