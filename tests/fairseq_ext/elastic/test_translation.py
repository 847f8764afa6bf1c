"""fairseq's ``--arch transformer`` as the largest subnet of a supernet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from torch import Tensor

from nas_core.supernet.elastic.conversion import Trained
from tests.contracts.elastic_source import ElasticSourceContract
from tests.fairseq_ext.elastic.conftest import FORMS
from tests.fairseq_ext.running import USER_DIR, mapped_gradients, passed


class TestTranslation(ElasticSourceContract):
    @pytest.fixture(scope="class", params=["learned", "unequal"])  # the others are those of test_plain
    def checkpoint(self, request: pytest.FixtureRequest, transformer: Callable[..., Path], joined: Path) -> Path:
        type(self).data = str(joined)
        return transformer(*FORMS[request.param])

    def host_gradients(self, trained: Trained, batch: Any) -> Mapping[str, Tensor]:
        criterion = LabelSmoothedCrossEntropyCriterion(trained.task, False, 0.1)  # private: its dictionaries
        loss, size, _ = criterion(trained._model, batch)  # private: the host's own network
        return mapped_gradients(trained, loss / size)

    def trained_further(self, supernet: Path, folder: Path) -> Path:
        passed(
            "train", self.data, "--user-dir", USER_DIR, "--task", "supernet_translation", "--arch", "mos_transformer",
            "--finetune-from-model", supernet, "--optimizer", "adam", "--lr", 0.01, "--batch-size", 32,
            "--max-update", 2, "--cpu", "--num-workers", 0, "--disable-validation", "--distributed-world-size", 1,
            "--criterion", "label_smoothed_cross_entropy", "--save-dir", folder,
        )  # fmt: skip
        return folder / "checkpoint_last.pt"

    def output(self, supernet: Any, architecture: Any) -> Tensor:
        source = torch.tensor([[1, 1, 7, 5, 9, 2], [8, 4, 6, 10, 11, 2]])
        target = torch.tensor([[2, 4, 8, 6, 5], [2, 9, 7, 1, 1]])
        with torch.no_grad(), supernet.model.using(architecture):
            logits: Tensor = supernet.model(source, None, target)[0]
        return logits[target.ne(1)]
