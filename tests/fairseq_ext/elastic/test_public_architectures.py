"""Settings of architectures that pretrained models are published of: whole, and with random weights of an eighth of
their widths."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY

from fairseq_ext.elastic.settings import translation_settings
from nas_core.models.kind import kind_of
from nas_core.supernet.elastic.translation_space import auto_space, trained_genes
from nas_core.supernet.host import open_trained

SIZES = {
    "transformer_iwslt_de_en": (6, 512, 1024, 4),
    "transformer_wmt_en_de": (6, 512, 2048, 8),
    "transformer_vaswani_wmt_en_de_big": (6, 1024, 4096, 16),
    "transformer_wmt_en_de_big": (6, 1024, 4096, 16),
    "transformer_wmt_en_de_big_t2t": (6, 1024, 4096, 16),
}


@pytest.mark.parametrize("arch", SIZES)
def test_their_spaces(arch: str) -> None:
    args = Namespace(arch=arch)
    ARCH_CONFIG_REGISTRY[arch](args)
    _, encoder, decoder = translation_settings(vars(args), {"task": {"_name": "translation"}}, Path("a.pt"))
    assert encoder == decoder == SIZES[arch]
    head_dim = encoder.embed_dim // encoder.heads
    space = auto_space("around", encoder, decoder, head_dim)
    assert dict(space.largest()) == trained_genes(encoder, decoder, head_dim)
    kind = kind_of(space)
    assert kind.params_m(space.smallest()) < kind.params_m(space.largest()) / 10
    narrow = space.choice("encoder.embed_dim").options[0]
    joint = {heads * head_dim for heads in space.choice("encoder.self_heads").options[0]}
    assert len(joint & set(narrow)) >= 2, "networks whose queries are as wide as the channels, as fairseq's"


@pytest.mark.parametrize("arch", ["transformer_iwslt_de_en", "transformer_wmt_en_de_big_t2t"])
def test_an_eighth_of_them(arch: str, transformer: Callable[..., Path], joined: Path) -> None:
    layers, width, hidden, heads = SIZES[arch]
    options: list[object] = []
    for side in ("encoder", "decoder"):
        options += [f"--{side}-layers", layers, f"--{side}-embed-dim", width // 8]
        options += [f"--{side}-ffn-embed-dim", hidden // 8, f"--{side}-attention-heads", heads]
    trained = open_trained(transformer(*options, "--share-all-embeddings", arch=arch), data=str(joined))
    assert trained.difference(trained.net) <= 1e-5


def test_a_checkpoint_from_before_2021(transformer: Callable[..., Path], joined: Path, tmp_path: Path) -> None:
    """One namespace of all settings, under ``args``."""
    content = torch.load(transformer(), weights_only=True)
    groups = content["cfg"]
    content["args"] = Namespace(**{**vars(groups["model"]), "task": "translation", "criterion": "cross_entropy"})
    content["cfg"] = None
    torch.save(content, tmp_path / "old.pt")
    trained = open_trained(tmp_path / "old.pt", data=str(joined))
    assert trained.difference(trained.net) <= 1e-5
