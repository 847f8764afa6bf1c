"""Settings of architectures that pretrained models are published of: whole, and with random weights of an eighth of
their widths; RoBERTa's base network whole, but for its vocabulary."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY

from fairseq_ext.elastic.settings import masked_lm_settings
from nas_core.models.kind import kind_of
from nas_core.supernet import open_trained
from nas_core.supernet.elastic import take_over
from nas_core.supernet.elastic.stack_space import StackSizes, masked_lm_around, trained_genes

SIZES = {
    "roberta_base": (12, 768, 3072, 12),
    "roberta_large": (24, 1024, 4096, 16),
    "roberta_prenorm": (12, 768, 3072, 12),
    "xlm": (16, 1280, 5120, 16),
}
every_architecture = pytest.mark.parametrize("arch", SIZES)


def options(*sizes: int) -> list[object]:
    names = ("layers", "embed-dim", "ffn-embed-dim", "attention-heads")
    return [each for name, size in zip(names, sizes, strict=True) for each in (f"--encoder-{name}", size)]


@every_architecture
def test_their_spaces(arch: str) -> None:
    args = Namespace(arch=arch)
    ARCH_CONFIG_REGISTRY[arch](args)
    found = masked_lm_settings(vars(args), {"_name": "masked_lm", "tokens_per_sample": 512}, Path("a.pt"))
    sizes = StackSizes(
        found.encoder_layers,
        found.encoder_embed_dim,
        found.encoder_ffn_embed_dim,
        found.encoder_attention_heads,
        found.max_positions,
    )
    assert sizes == (*SIZES[arch], 512)
    space = masked_lm_around("around", sizes)
    genes = {**trained_genes(sizes), "sequence_length": 512}
    assert dict(space.largest()) == genes
    kind = kind_of(space)
    assert kind.params_m(space.smallest()) < kind.params_m(space.largest()) / 8
    widths = {heads * sizes.head_dim for heads in space.choice("heads").options[0]}
    assert len(widths & set(space.choice("embed_dim").options[0])) >= 2, "some may become fairseq's own"


@every_architecture
def test_an_eighth_of_them(arch: str, roberta: Callable[..., Path], text: Path) -> None:
    layers, width, hidden, heads = SIZES[arch]
    checkpoint = roberta(*options(layers, width // 8, hidden // 8, heads), "--arch", arch)
    trained = open_trained(checkpoint, data=str(text))
    assert trained.difference(trained.net) <= 1e-5


@pytest.mark.slow
def test_the_base_network_is_taken_over_within_a_minute(
    roberta: Callable[..., Path], text: Path, tmp_path: Path
) -> None:
    checkpoint = roberta(*options(*SIZES["roberta_base"]))
    begun = time.process_time()
    trained = open_trained(checkpoint, data=str(text))
    done = take_over(trained, tmp_path / "supernet.pt", importance_by="weight")
    assert time.process_time() - begun < 60
    assert done.difference <= 1e-5 and done.sorted_axes == 25
    assert sum(parameter.numel() for parameter in trained.net.parameters()) > 85e6


def test_a_checkpoint_from_before_2021(roberta: Callable[..., Path], text: Path, tmp_path: Path) -> None:
    """One namespace of all settings, under ``args``."""
    content = torch.load(roberta(), weights_only=True)
    groups = content["cfg"]
    content["args"] = Namespace(**{**vars(groups["model"]), "task": "masked_lm", "criterion": "masked_lm"})
    content["cfg"] = None
    torch.save(content, tmp_path / "old.pt")
    trained = open_trained(tmp_path / "old.pt", data=str(text))
    assert trained.difference(trained.net) <= 1e-5
