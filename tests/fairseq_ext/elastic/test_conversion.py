"""fairseq's own models as the largest subnet of a supernet."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import Tensor

from fairseq_ext.elastic.settings import language_settings, masked_lm_settings, translation_settings
from nas_core.models.kind import kind_of
from nas_core.space import Architecture
from nas_core.supernet import open_supernet
from nas_core.supernet.elastic import stack_space, translation_space
from nas_core.supernet.elastic.conversion import Trained, convert
from nas_core.supernet.host import open_trained
from tests.contracts.elastic_source import ElasticSourceContract
from tests.fairseq_ext.running import CLASSES, CPU, MASKED, OWN, USER_DIR, mapped_gradients, passed

OwnModel = Callable[..., Path]


class TestTranslation(ElasticSourceContract):
    kind: ClassVar = "translation"
    form: ClassVar = "learned"  # the others are those of test_plain
    training: ClassVar[list[object]] = [
        "--task", "supernet_translation", "--arch", "mos_transformer", "--criterion", "label_smoothed_cross_entropy",
    ]  # fmt: skip

    @pytest.fixture(scope="class")
    def checkpoint(self, request: pytest.FixtureRequest, own_model: OwnModel) -> Path:
        type(self).data = str(request.getfixturevalue(OWN[self.kind][0]))
        return own_model(self.kind, self.form)

    def host_loss(self, trained: Any, batch: Any) -> tuple[Any, Any, Any]:
        return LabelSmoothedCrossEntropyCriterion(trained.task, False, 0.1)(trained._model, batch)  # type: ignore[no-any-return]

    def host_gradients(self, trained: Trained, batch: Any) -> Mapping[str, Tensor]:
        loss, size, _ = self.host_loss(trained, batch)
        return mapped_gradients(trained, loss / size)

    def trained_further(self, supernet: Path, folder: Path) -> Path:
        passed(
            "train", self.data, "--user-dir", USER_DIR, *self.training, "--finetune-from-model", supernet,
            "--optimizer", "adam", "--lr", 0.01, "--batch-size", 16, "--max-update", 2, *CPU, "--disable-validation",
            "--save-dir", folder,
        )  # fmt: skip
        return folder / "checkpoint_last.pt"

    def logits(self, supernet: Any) -> Tensor:
        source = torch.tensor([[1, 1, 7, 5, 9, 2], [8, 4, 6, 10, 11, 2]])
        target = torch.tensor([[2, 4, 8, 6, 5], [2, 9, 7, 1, 1]])
        return supernet.model(source, None, target)[0][target.ne(1)]  # type: ignore[no-any-return]

    def output(self, supernet: Any, architecture: Any) -> Tensor:
        with torch.no_grad(), supernet.model.use_architecture(architecture):
            return self.logits(supernet)


class TestLanguage(TestTranslation):
    kind = "language"
    training: ClassVar = [
        "--task", "supernet_language_modeling", "--arch", "mos_transformer_lm", "--tokens-per-sample", 24,
        "--criterion", "cross_entropy",
    ]  # fmt: skip

    def host_loss(self, trained: Any, batch: Any) -> tuple[Any, Any, Any]:
        return CrossEntropyCriterion(trained.task, False)(trained._model, batch)  # type: ignore[no-any-return]

    def logits(self, supernet: Any) -> Tensor:
        return supernet.model(torch.tensor([[2, 7, 5, 9, 8, 4], [2, 4, 6, 10, 11, 12]]))[0]  # type: ignore[no-any-return]


class TestMaskedLM(TestTranslation):
    kind = "masked_lm"
    form = "untied"
    training: ClassVar = ["--task", "supernet_masked_lm", *MASKED, "--arch", "mos_roberta"]

    def host_loss(self, trained: Any, batch: Any) -> tuple[Any, Any, Any]:
        target = torch.full_like(batch["tokens"], trained.task.source_dictionary.pad()).flatten()
        target[batch["at"]] = batch["target"]
        return self.criterion("masked_lm", trained, batch, target.view_as(batch["tokens"]))

    def criterion(self, name: str, trained: Any, batch: Any, target: Tensor) -> tuple[Any, Any, Any]:
        settings = SimpleNamespace(
            tpu=False, classification_head_name="sentence_classification_head", regression_target=False,
            report_mcc=False, report_acc_and_f1=False, report_pearson_and_spearman=False,
        )  # fmt: skip
        sample = {"net_input": {"src_tokens": batch["tokens"]}, "target": target, "ntokens": 1, "nsentences": 1}
        return CRITERION_REGISTRY[name](settings, trained.task)(trained._model, sample)  # type: ignore[no-any-return]

    def logits(self, supernet: Any) -> Tensor:
        tokens = torch.tensor([[0, 7, 5, 9, 2, 1], [0, 4, 6, 10, 11, 2], [0, 8, 2, 1, 1, 1]])
        logits: Tensor = supernet.model(tokens, classification_head_name=supernet.head)[0]
        return logits if supernet.head else logits[tokens.ne(1)]


class TestClassifier(TestMaskedLM):
    """A RoBERTa that tells sentences apart; its head is converted."""

    kind = "classifier"
    form = "gelu"
    training: ClassVar = ["--task", "sentence_prediction", *CLASSES, "--arch", "mos_roberta"]

    def host_loss(self, trained: Any, batch: Any) -> tuple[Any, Any, Any]:
        return self.criterion("sentence_prediction", trained, batch, batch["target"])


def test_sides_of_unequal_size(own_model: OwnModel, joined: Path) -> None:
    trained = open_trained(own_model("translation", "unequal"), data=str(joined))
    assert trained.difference(trained.net) <= 1e-5


PUBLIC = {
    "transformer_iwslt_de_en": (6, 512, 1024, 4),
    "transformer_wmt_en_de_big_t2t": (6, 1024, 4096, 16),
    "transformer_lm_gpt": (12, 768, 3072, 12),
    "transformer_lm_gpt2_small": (24, 1024, 4096, 16),
    "roberta_large": (24, 1024, 4096, 16),
    "xlm": (16, 1280, 5120, 16),
}
"""Architectures with published models: layers, channels, hidden units and heads."""


@pytest.mark.parametrize("arch", PUBLIC)
def test_spaces_of_published_architectures(arch: str) -> None:
    args, path = Namespace(arch=arch, tokens_per_sample=512), Path("a.pt")
    ARCH_CONFIG_REGISTRY[arch](args)
    if arch.startswith("transformer_lm"):
        _, sizes = language_settings(vars(args), {"task": {"_name": "language_modeling"}}, path)
        space = stack_space.language_around("around", sizes)
        genes = stack_space.trained_genes(sizes, context_length=sizes.length)
    elif arch.startswith("transformer"):
        _, sizes, decoder = translation_settings(vars(args), {"task": {"_name": "translation"}}, path)
        assert sizes == decoder
        sides = sizes, decoder, sizes.embed_dim // sizes.heads
        space, genes = translation_space.auto_space("around", *sides), translation_space.trained_genes(*sides)
    else:
        _, sizes = masked_lm_settings(vars(args), {"_name": "masked_lm"}, path)
        space, genes = stack_space.masked_lm_around("around", sizes), stack_space.trained_genes(sizes)
        genes = {**genes, "sequence_length": 512}
    assert tuple(sizes)[:4] == PUBLIC[arch] and dict(space.largest()) == genes
    assert kind_of(space).params_m(space.smallest()) < kind_of(space).params_m(space.largest()) / 4


@pytest.mark.parametrize("kind", ["translation", "masked_lm"])
def test_a_checkpoint_from_before_2021(kind: str, own_model: OwnModel, request: Any, tmp_path: Path) -> None:
    """One namespace of all settings, under ``args``."""
    content = torch.load(own_model(kind, "learned" if kind == "translation" else "base"), weights_only=True)
    groups = content["cfg"]
    content["args"] = Namespace(**{**vars(groups["model"]), "task": kind, "criterion": "cross_entropy"})
    content["cfg"] = None
    torch.save(content, tmp_path / "old.pt")
    trained = open_trained(tmp_path / "old.pt", data=str(request.getfixturevalue(OWN[kind][0])))
    assert trained.difference(trained.net) <= 1e-5


def test_a_network_of_several_languages_is_converted(own_model: OwnModel, text: Path, tmp_path: Path) -> None:
    content = torch.load(own_model("masked_lm", "base"), weights_only=True)
    content["cfg"]["task"]["_name"] = "multilingual_masked_lm"
    torch.save(content, tmp_path / "changed.pt")
    trained = open_trained(tmp_path / "changed.pt", data=str(text))
    assert trained.difference(trained.net) <= 1e-5


def test_other_attention_of_a_language_model_is_fitted(own_model: OwnModel, text: Path, tmp_path: Path) -> None:
    kinds = ("softmax", "linear")
    trained = open_trained(own_model("language", "learned"), data=str(text), space="attention", attention=kinds)
    assert trained.space.cardinality() == 4, "nothing but the kinds of two layers"
    done = convert(trained, tmp_path / "supernet.pt", calibration_batches=5, fit_steps=20)
    assert len(done.fitted) == 2
    assert all(fitted.final < fitted.closed_form <= 0.9 * fitted.before for fitted in done.fitted), done.fitted
    supernet, largest = open_supernet(tmp_path / "supernet.pt"), trained.space.largest()
    losses = [supernet.evaluate(Architecture({**largest, "attention": (kind, kind)}))["loss"] for kind in kinds]
    assert len(set(losses)) == 2
