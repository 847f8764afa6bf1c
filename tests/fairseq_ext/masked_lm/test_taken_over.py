"""fairseq's ``--arch roberta*`` as the largest subnet of a supernet, in every form that has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.criterions import CRITERION_REGISTRY
from torch import Tensor

from fairseq_ext.elastic.mapping import masked_lm_state
from nas_core.supernet.elastic import Trained
from tests.contracts.elastic_source import ElasticSourceContract
from tests.fairseq_ext.masked_lm.training import CLASSES, FORMS, MASKED
from tests.fairseq_ext.running import USER_DIR, run

Roberta = Callable[..., Path]
TOKENS = torch.tensor([[0, 7, 5, 9, 2, 1], [0, 4, 6, 10, 11, 2], [0, 8, 2, 1, 1, 1]])


class TestMaskedLM(ElasticSourceContract):
    task: list[object] = ["--task", "supernet_masked_lm", *MASKED]  # noqa: RUF012 - never changed

    @pytest.fixture(scope="class", params=FORMS)
    def checkpoint(self, request: pytest.FixtureRequest, roberta: Roberta, text: Path) -> Path:
        type(self).data = str(text)
        return roberta(*FORMS[request.param])

    def host_gradients(self, trained: Trained, batch: Any) -> Mapping[str, Tensor]:
        found: Any = trained
        model, task = found._model, found._task  # private: the network that is taken over
        model.zero_grad()
        target = torch.full_like(batch["tokens"], task.source_dictionary.pad()).flatten()
        target[batch["at"]] = batch["target"]
        sample = {"net_input": {"src_tokens": batch["tokens"]}, "target": target.view_as(batch["tokens"])}
        loss, size, _ = criterion("masked_lm", task)(model, {**sample, "ntokens": 1, "nsentences": 1})
        (loss / size).backward()
        return gradients(model, trained)

    def trained_further(self, supernet: Path, folder: Path) -> Path:
        done = run(
            "train", self.data, "--user-dir", USER_DIR, *self.task, "--arch", "mos_roberta", "--finetune-from-model",
            supernet, "--optimizer", "adam", "--lr", 0.01, "--batch-size", 32, "--max-update", 2, "--cpu",
            "--num-workers", 0, "--disable-validation", "--distributed-world-size", 1, "--save-dir", folder,
        )  # fmt: skip
        assert done.code == 0, (done.err, done.out[-2000:])
        return folder / "checkpoint_last.pt"

    def output(self, supernet: Any, architecture: Any) -> Tensor:
        with torch.no_grad(), supernet.model.using(architecture):
            logits: Tensor = supernet.model(TOKENS, classification_head_name=supernet.head)[0]
        return logits if supernet.head else logits[TOKENS.ne(1)]


class TestClassifier(TestMaskedLM):
    """Trained to tell sentences apart; its head is taken over."""

    task = ["--task", "sentence_prediction", *CLASSES]  # noqa: RUF012 - never changed

    @pytest.fixture(scope="class")
    def checkpoint(self, roberta: Roberta, labelled: Path) -> Path:  # type: ignore[override]
        type(self).data = str(labelled)
        return roberta("--pooler-activation-fn", "gelu", task="sentence_prediction")

    def host_gradients(self, trained: Trained, batch: Any) -> Mapping[str, Tensor]:
        found: Any = trained
        model, task = found._model, found._task  # private: as above
        model.zero_grad()
        sample = {"net_input": {"src_tokens": batch["tokens"]}, "target": batch["target"], "ntokens": 1}
        loss, size, _ = criterion("sentence_prediction", task)(model, sample)
        (loss / size).backward()
        return gradients(model, trained)


def criterion(name: str, task: Any) -> Any:
    kind = CRITERION_REGISTRY[name]
    settings: Any = type("Settings", (), {"tpu": False, "classification_head_name": "sentence_classification_head",
                                          "regression_target": False, "report_mcc": False, "report_acc_and_f1": False,
                                          "report_pearson_and_spearman": False})  # fmt: skip
    return kind(settings, task)


def gradients(model: Any, trained: Trained) -> dict[str, Tensor]:
    """fairseq's, under the names of the elastic network; those that are not zero."""
    used = {id(parameter): parameter.grad is not None for parameter in model.parameters()}
    marks = {id(parameter): parameter.detach().clone() for parameter in model.parameters()}
    for parameter in model.parameters():
        parameter.data = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    found = {name: tensor.clone() for name, tensor in masked_lm_state(model, trained.net).items()}
    for parameter in model.parameters():
        parameter.data = marks[id(parameter)]
    assert any(used.values())
    named = {name: parameter.grad is not None for name, parameter in trained.net.named_parameters()}
    assert all(found[name].abs().max() == 0 for name, here in named.items() if not here)
    return {name: found[name] for name, here in named.items() if here}
