"""Tiny RoBERTa networks, and checkpoints of them as fairseq writes them."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.models.roberta import RobertaModel
from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask
from fairseq.tasks.sentence_prediction import SentencePredictionConfig, SentencePredictionTask

from nas_core.cli import main

LONGEST, PAD, HEAD = 12, 1, "sentence_classification_head"


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


def convert(checkpoint: Path) -> Path:
    """The supernet of a trained network, its channels in the order of that network."""
    out = checkpoint.with_name("family.pt")
    assert main(["elastic", "--checkpoint", str(checkpoint), "--importance", "none", "--out", str(out)]) == 0
    return out


def export(checkpoint: Path, out: Path, *more: str) -> int:
    return main(["export", "--checkpoint", str(checkpoint), "--out", str(out), *more])
