"""Checkpoints of masked language models as supernets of ``nas_core``: evaluated with inherited weights, extracted.

Shapes: B batch, T length, N predicted tokens, K classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fairseq_ext.checkpoint import load_network, read_checkpoint
from fairseq_ext.masked_lm.batches import validation_batches
from fairseq_ext.masked_lm.checkpoint import write_plain, write_subnet
from nas_core.device import usable_device
from nas_core.models.masked_lm import MaskedLMNet, Subnet
from nas_core.precision import check_precision, computing_in
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.host import Report

if TYPE_CHECKING:
    from nas_core.export import Exportable

__all__ = ["MaskedLMSupernet", "batch_loss"]

_LN2 = 0.6931471805599453


class MaskedLMSupernet:
    """A ``mos_/hat_roberta`` checkpoint, trained by ``masked_lm`` or ``sentence_prediction``. Validation batches are
    read once, on the first evaluation, with the masks that follow from the seed of the training.

    ``precision`` is that of evaluation, one of :data:`nas_core.precision.PRECISIONS`; what is extracted or exported is
    float32.

    Raises:
        ConfigError: the device is not usable here, or does not compute in this precision.
    """

    def __init__(
        self,
        path: Path,
        data: str | None = None,
        valid_subset: str = "valid",
        valid_sentences: int | None = None,
        device: str = "cpu",
        precision: str = "fp32",
    ) -> None:
        self.path, self._subset, self._sentences = path, valid_subset, valid_sentences
        self.device = usable_device(device)
        self.precision = check_precision(precision, self.device)
        self._state = read_checkpoint(path)
        self.fairseq_task, model = load_network(path, self._state, data)
        self.model = model.to(self.device)
        self._batches: list[dict[str, Any]] | None = None
        self.space: SearchSpace = self.model.space
        config = self.fairseq_task.cfg
        self.head: str | None = getattr(config, "classification_head_name", None)
        classes = int(config.num_classes) if self.head else 0
        self.task = {"kind": "masked_lm", "vocab": len(self.fairseq_task.source_dictionary), "classes": classes}
        regression = bool(getattr(config, "regression_target", False))
        unit = "squared error" if regression else f"bits per {'sequence' if self.head else 'masked token'}"
        self.units: Mapping[str, str] = {"loss": unit}
        self._scale = 1.0 if regression else _LN2

    def validation(self) -> list[dict[str, Any]]:
        """The batches that are evaluated, read once."""
        if self._batches is None:
            self._batches = validation_batches(
                self.fairseq_task, self._subset, self._sentences, self.model.longest(), self.device
            )
        return self._batches

    def evaluate(self, architecture: Architecture, report: Report | None = None) -> dict[str, float]:
        """``loss`` in bits per masked token with inherited weights, or per sequence of a classifier, whose ``accuracy``
        is told too; experts are mixed once for all batches. The device is waited for once, at the end, or after each
        batch that is reported."""
        batches = self.validation()
        architecture = self.space.validate(architecture)
        sums: list[Tensor] = []
        count = 0
        with (
            torch.no_grad(),
            computing_in(self.precision, self.device),
            self.model.using(architecture, freeze=True),
        ):
            for index, batch in enumerate(batches, start=1):
                sums.append(torch.stack(batch_loss(self.model.net, self.model.active_subnet(), batch, self.head)))
                count += batch["count"]
                if report is not None:
                    report(index / len(batches), self._metrics(sums, count))
        return self._metrics(sums, count)

    def _metrics(self, sums: list[Tensor], count: int) -> dict[str, float]:
        loss, right = (sum(column) / count for column in zip(*torch.stack(sums).tolist(), strict=True))
        metrics = {"loss": loss / self._scale}
        return {**metrics, "accuracy": right} if self.head and self._scale != 1.0 else metrics

    def extract(self, architecture: Architecture, path: Path) -> int:
        """Save the collapsed subnet as a fairseq checkpoint; the number of its parameters."""
        architecture = self.space.validate(architecture)
        weights = self.model.net.static_state(architecture)
        write_subnet(self._state, weights, architecture, Path(path))
        return sum(tensor.numel() for tensor in weights.values() if tensor.is_floating_point())

    def extract_plain(self, architecture: Architecture, path: Path) -> int:
        """Save the collapsed subnet as a checkpoint of fairseq's own ``--arch roberta``; its parameter count.

        Raises:
            ConfigError: its layers are not all alike, or not such as fairseq's are.
        """
        return write_plain(self._state, self.model, self.space.validate(architecture), Path(path))

    def exportable(self, architecture: Architecture) -> Exportable:
        """The subnet with its head, and its dictionary."""
        from fairseq_ext.exporting import masked_lm_exportable
        from nas_core.models.masked_lm.export import encoder_part

        architecture = self.space.validate(architecture)
        part = encoder_part(self.model.net, architecture, self.head, self.model.longest())
        return masked_lm_exportable(self.fairseq_task, part, architecture)


def batch_loss(net: MaskedLMNet, subnet: Subnet, batch: Mapping[str, Any], head: str | None) -> tuple[Tensor, Tensor]:
    """The sum of a batch's losses in nats, and how many tokens or classes are predicted right.

    Args:
        batch: of :func:`fairseq_ext.masked_lm.batches.validation_batches`.
        head: the classification head that is evaluated; None: what predicts tokens.
    """
    features = net.encode(subnet, batch["tokens"])
    if head is None:
        logits = net.predict(subnet, features.flatten(0, 1).index_select(0, batch["at"]))
    else:
        logits = net.classify(subnet, features, head)
    logits, target = logits.float(), batch["target"]
    if target.is_floating_point():
        return F.mse_loss(logits.flatten(), target.flatten(), reduction="sum"), target.new_zeros(())
    return F.cross_entropy(logits, target, reduction="sum"), (logits.argmax(-1) == target).float().sum()
