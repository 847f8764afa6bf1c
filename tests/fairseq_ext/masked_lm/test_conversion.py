"""fairseq's ``--arch roberta*`` as the largest subnet of a supernet, and a classifier of sentences."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import Tensor

from fairseq_ext.elastic.settings import masked_lm_settings
from nas_core.models.kind import kind_of
from nas_core.supernet.elastic.conversion import Trained
from nas_core.supernet.elastic.stack_space import masked_lm_around, trained_genes
from nas_core.supernet.host import open_trained
from tests.contracts.elastic_source import ElasticSourceContract
from tests.fairseq_ext.masked_lm.training import CLASSES, FORMS, MASKED
from tests.fairseq_ext.running import USER_DIR, mapped_gradients, passed

Roberta = Callable[..., Path]
TOKENS = torch.tensor([[0, 7, 5, 9, 2, 1], [0, 4, 6, 10, 11, 2], [0, 8, 2, 1, 1, 1]])


class TestMaskedLM(ElasticSourceContract):
    task: list[object] = ["--task", "supernet_masked_lm", *MASKED]  # noqa: RUF012 - never changed

    @pytest.fixture(scope="class")
    def checkpoint(self, roberta: Roberta, text: Path) -> Path:
        type(self).data = str(text)
        return roberta(*FORMS["untied"])  # the other forms are those of test_plain

    def host_gradients(self, trained: Trained, batch: Any) -> Mapping[str, Tensor]:
        task: Any = trained.task  # private: its dictionary
        target = torch.full_like(batch["tokens"], task.source_dictionary.pad()).flatten()
        target[batch["at"]] = batch["target"]
        return self.gradients("masked_lm", trained, batch, target.view_as(batch["tokens"]))

    def gradients(self, name: str, trained: Any, batch: Any, target: Tensor) -> Mapping[str, Tensor]:
        settings: Any = type("Settings", (), {"tpu": False, "classification_head_name": "sentence_classification_head",
                                              "regression_target": False, "report_mcc": False,
                                              "report_acc_and_f1": False,
                                              "report_pearson_and_spearman": False})  # fmt: skip
        sample = {"net_input": {"src_tokens": batch["tokens"]}, "target": target, "ntokens": 1, "nsentences": 1}
        loss, size, _ = CRITERION_REGISTRY[name](settings, trained.task)(trained._model, sample)
        return mapped_gradients(trained, loss / size)

    def trained_further(self, supernet: Path, folder: Path) -> Path:
        passed(
            "train", self.data, "--user-dir", USER_DIR, *self.task, "--arch", "mos_roberta", "--finetune-from-model",
            supernet, "--optimizer", "adam", "--lr", 0.01, "--batch-size", 32, "--max-update", 2, "--cpu",
            "--num-workers", 0, "--disable-validation", "--distributed-world-size", 1, "--save-dir", folder,
        )  # fmt: skip
        return folder / "checkpoint_last.pt"

    def output(self, supernet: Any, architecture: Any) -> Tensor:
        with torch.no_grad(), supernet.model.using(architecture):
            logits: Tensor = supernet.model(TOKENS, classification_head_name=supernet.head)[0]
        return logits if supernet.head else logits[TOKENS.ne(1)]


class TestClassifier(TestMaskedLM):
    """Trained to tell sentences apart; its head is converted."""

    task = ["--task", "sentence_prediction", *CLASSES]  # noqa: RUF012 - never changed

    @pytest.fixture(scope="class")
    def checkpoint(self, roberta: Roberta, labelled: Path) -> Path:  # type: ignore[override]
        type(self).data = str(labelled)
        return roberta("--pooler-activation-fn", "gelu", task="sentence_prediction")

    def host_gradients(self, trained: Trained, batch: Any) -> Mapping[str, Tensor]:
        return self.gradients("sentence_prediction", trained, batch, batch["target"])


PUBLIC = {
    "roberta_base": (12, 768, 3072, 12),
    "roberta_large": (24, 1024, 4096, 16),
    "roberta_prenorm": (12, 768, 3072, 12),
    "xlm": (16, 1280, 5120, 16),
}


@pytest.mark.parametrize("arch", PUBLIC)
def test_spaces_of_published_architectures(arch: str) -> None:
    args = Namespace(arch=arch)
    ARCH_CONFIG_REGISTRY[arch](args)
    task = {"_name": "masked_lm", "tokens_per_sample": 512}
    _, sizes = masked_lm_settings(vars(args), task, Path("a.pt"))
    assert tuple(sizes) == (*PUBLIC[arch], 512)
    space = masked_lm_around("around", sizes)
    assert dict(space.largest()) == {**trained_genes(sizes), "sequence_length": 512}
    kind = kind_of(space)
    assert kind.params_m(space.smallest()) < kind.params_m(space.largest()) / 8
    widths = {heads * sizes.head_dim for heads in space.choice("heads").options[0]}
    assert len(widths & set(space.choice("embed_dim").options[0])) >= 2, "some may become fairseq's own"


def test_a_checkpoint_from_before_2021(roberta: Callable[..., Path], text: Path, tmp_path: Path) -> None:
    """One namespace of all settings, under ``args``."""
    content = torch.load(roberta(), weights_only=True)
    groups = content["cfg"]
    content["args"] = Namespace(**{**vars(groups["model"]), "task": "masked_lm", "criterion": "masked_lm"})
    content["cfg"] = None
    torch.save(content, tmp_path / "old.pt")
    trained = open_trained(tmp_path / "old.pt", data=str(text))
    assert trained.difference(trained.net) <= 1e-5
