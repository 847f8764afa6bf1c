"""fairseq's ``--arch transformer_lm`` as the largest subnet of a supernet, and back."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import Tensor

from fairseq_ext.elastic.settings import language_settings
from nas_core.errors import ConfigError
from nas_core.models.kind import kind_of
from nas_core.space import Architecture
from nas_core.supernet import open_supernet
from nas_core.supernet.elastic.conversion import Trained, convert
from nas_core.supernet.elastic.stack_space import language_around, language_genes
from nas_core.supernet.host import open_trained
from tests.contracts.elastic_source import ElasticSourceContract
from tests.fairseq_ext.distillation.teachers import as_distilled, left_of_teacher
from tests.fairseq_ext.running import USER_DIR, fairseq_alone, mapped_gradients, passed, randomised

SIZES = ["--decoder-layers", 2, "--decoder-embed-dim", 16, "--decoder-input-dim", 16, "--decoder-output-dim", 16,
         "--decoder-ffn-embed-dim", 24, "--decoder-attention-heads", 4]  # fmt: skip
FORMS: dict[str, list[object]] = {
    "post-norm": [],
    "pre-norm": ["--decoder-normalize-before", "--share-decoder-input-output-embed", "--activation-fn", "gelu",
                 "--no-scale-embedding"],
    "learned": ["--decoder-normalize-before", "--no-decoder-final-norm", "--decoder-learned-pos",
                "--activation-fn", "gelu_accurate", "--share-decoder-input-output-embed"],
}  # fmt: skip
TOKENS = torch.tensor([[2, 7, 5, 9, 8, 4], [2, 4, 6, 10, 11, 12]])


@pytest.fixture(scope="module")
def transformer_lm(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``transformer_lm(form)``: the checkpoint of such a network after one update, all its weights random."""

    @cache
    def checkpoint(form: str) -> Path:
        folder = tmp_path_factory.mktemp("transformer-lm")
        passed(
            "train", text, "--task", "language_modeling", "--arch", "transformer_lm", *SIZES, *FORMS[form],
            "--tokens-per-sample", 24, "--optimizer", "adam", "--batch-size", 8, "--criterion", "cross_entropy",
            "--max-update", 1, "--cpu", "--num-workers", 0, "--disable-validation",
            "--distributed-world-size", 1, "--save-dir", folder,
        )  # fmt: skip
        return randomised(folder / "checkpoint_last.pt")

    return checkpoint


class TestLanguage(ElasticSourceContract):
    @pytest.fixture(scope="class")
    def checkpoint(self, transformer_lm: Callable[[str], Path], text: Path) -> Path:
        type(self).data = str(text)
        return transformer_lm("learned")  # the other forms are those of the plain checkpoints below

    def host_gradients(self, trained: Trained, batch: Any) -> Mapping[str, Tensor]:
        loss, size, _ = CrossEntropyCriterion(trained.task, False)(trained._model, batch)  # private: the host's own
        return mapped_gradients(trained, loss / size)

    def trained_further(self, supernet: Path, folder: Path) -> Path:
        passed(
            "train", self.data, "--user-dir", USER_DIR, "--task", "supernet_language_modeling",
            "--arch", "mos_transformer_lm", "--finetune-from-model", supernet, "--optimizer", "adam", "--lr", 0.01,
            "--batch-size", 8, "--max-update", 2, "--cpu", "--num-workers", 0, "--disable-validation",
            "--distributed-world-size", 1, "--tokens-per-sample", 24, "--criterion", "cross_entropy",
            "--save-dir", folder,
        )  # fmt: skip
        return folder / "checkpoint_last.pt"

    def output(self, supernet: Any, architecture: Any) -> Tensor:
        with torch.no_grad(), supernet.model.using(architecture):
            logits: Tensor = supernet.model(TOKENS)[0]
        return logits


def narrow(space: Any, **genes: Any) -> Architecture:
    """Width 12 with three heads of 4 numbers."""
    largest = {**space.largest().to_dict(), "embed_dim": 12, "ffn_dim": [18, 18], "heads": [3, 3]}
    found: Architecture = space.validate(Architecture({**largest, **genes}))
    return found


def test_fairseq_alone_computes_the_same(transformer_lm: Callable[[str], Path], text: Path, tmp_path: Path) -> None:
    expected, cases = [], []
    for form in FORMS:
        convert(open_trained(transformer_lm(form), data=str(text), calibrate=1), tmp_path / f"{form}.super",
                  importance_by="activation", calibrate=1)  # fmt: skip
        as_distilled(tmp_path / f"{form}.super", "distilled_cross_entropy")
        supernet: Any = open_supernet(tmp_path / f"{form}.super")
        supernet.extract(narrow(supernet.space), tmp_path / "subnet.pt")
        assert left_of_teacher(tmp_path / "subnet.pt") == ("cross_entropy", set())
        assert supernet.extract_plain(narrow(supernet.space), tmp_path / f"{form}.pt") > 0
        cases.append({"data": str(text), "path": str(tmp_path / f"{form}.pt"), "inputs": [TOKENS], "options": {},
                      "criterion": "CrossEntropyCriterion"})  # fmt: skip
        with torch.no_grad(), supernet.model.using(narrow(supernet.space)):
            expected.append(supernet.model(TOKENS)[0])
        for genes, part in (({"ffn_dim": [18, 24]}, "ffn_dim is 18, 24"), ({"heads": [2, 2]}, "queries are 8 wide")):
            with pytest.raises(ConfigError, match=part):
                supernet.extract_plain(narrow(supernet.space, **genes), tmp_path / "no.pt")
    for logits, reference in zip(fairseq_alone(tmp_path, cases), expected, strict=True):
        assert float((logits - reference).abs().max() / reference.abs().max()) <= 1e-5
    again = open_trained(tmp_path / "pre-norm.pt", data=str(text))
    assert again.difference(again.net) <= 1e-5 and again.space.largest()["embed_dim"] == 12
    assert not (tmp_path / "no.pt").exists()


PUBLIC = {
    "transformer_lm_gpt": (12, 768, 3072, 12),
    "transformer_lm_gpt2_small": (24, 1024, 4096, 16),
    "transformer_lm_gpt3_small": (12, 768, 3072, 12),
    "transformer_lm_big": (12, 1024, 4096, 16),
}


@pytest.mark.parametrize("arch", PUBLIC)
def test_spaces_of_published_architectures(arch: str) -> None:
    args = Namespace(arch=arch, tokens_per_sample=512)
    ARCH_CONFIG_REGISTRY[arch](args)
    _, sizes = language_settings(vars(args), {"task": {"_name": "language_modeling"}}, Path("a.pt"))
    assert tuple(sizes) == (*PUBLIC[arch], 512)
    space = language_around("around", sizes)
    assert dict(space.largest()) == language_genes(sizes)
    assert kind_of(space).params_m(space.smallest()) < kind_of(space).params_m(space.largest()) / 4


def test_other_attention_of_a_language_model_is_fitted(
    transformer_lm: Callable[[str], Path], text: Path, tmp_path: Path
) -> None:
    kinds = ("softmax", "linear", "local")
    trained = open_trained(transformer_lm("learned"), data=str(text), space="attention", attention=kinds)
    assert trained.space.cardinality() == 9, "nothing but the kinds of two layers"
    done = convert(trained, tmp_path / "supernet.pt", calibrate=5, fit_steps=20)
    linear = [each for each in done.fitted if each.kind == "linear"]
    assert len(linear) == 2 and len(done.fitted) == 4
    assert all(each.after < each.solved <= 0.9 * each.before for each in linear), linear
    supernet = open_supernet(tmp_path / "supernet.pt")
    losses = {kind: supernet.evaluate(Architecture({**trained.space.largest(), "attention": (kind, kind)}))["loss"]
              for kind in kinds}  # fmt: skip
    assert len(set(losses.values())) == 3
