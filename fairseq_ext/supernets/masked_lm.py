"""Supernets of masked language models.

Shapes: N predicted tokens.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from fairseq_ext.masked_lm.batches import batch_loss, plain_batch
from fairseq_ext.masked_lm.checkpoint import write_plain, write_subnet
from fairseq_ext.supernets.base import BITS, FairseqSupernet
from nas_core.models import kind_of
from nas_core.models.masked_lm import write_bert
from nas_core.space import Architecture

if TYPE_CHECKING:
    from nas_core.export import Exportable

__all__ = ["MaskedLMSupernet"]


class MaskedLMSupernet(FairseqSupernet):
    """A ``mos_/hat_roberta`` or ``.._bert`` checkpoint, trained by ``masked_lm`` or ``sentence_prediction``. All are
    asked about the same masked tokens, whatever seed they were trained with. ``loss`` is of each masked token, or of
    each sequence of a classifier, whose ``accuracy`` is told too."""

    counted = "count"
    maximised: ClassVar = ("accuracy",)
    nothing = "has nothing to predict; evaluation needs at least one masked token"
    write_subnet = staticmethod(write_subnet)
    write_plain = staticmethod(write_plain)

    def __init__(self, path: Path, *args: Any, **options: Any) -> None:
        super().__init__(path, *args, **options)
        config = self.fairseq_task.cfg
        config.seed = 1  # by which fairseq masks
        self.head: str | None = getattr(config, "classification_head_name", None)
        self._regression = bool(getattr(config, "regression_target", False))
        bits = f"bits per {'sequence' if self.head else 'masked token'}"
        self.units = {"loss": "squared error" if self._regression else bits}

    @property
    def task(self) -> dict[str, Any]:
        classes = int(self.fairseq_task.cfg.num_classes) if self.head else 0
        return {"kind": kind_of(self.space).name, "vocab": len(self.fairseq_task.source_dictionary), "classes": classes}

    def _prepared(self, batch: dict[str, Any]) -> dict[str, Any]:
        return plain_batch(batch, self.fairseq_task.source_dictionary.pad(), self.device)

    def _sums(self, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """The sums of a batch's losses and of what is predicted right."""
        return batch_loss(self.model.net, self.model.active_subnet(), batch, self.head)

    def _metrics(self, loss: float, right: float) -> dict[str, float]:
        if self._regression:
            return {"loss": loss}
        return {"loss": loss / BITS, **({"accuracy": right} if self.head else {})}

    def extract_bert(self, architecture: Architecture, path: Path) -> int:
        """Save the collapsed subnet in the layout of Hugging Face's BERT, with its dictionary; see
        :func:`nas_core.models.masked_lm.write_bert`."""
        words = self.fairseq_task.source_dictionary
        return write_bert(self.model.net, self.space.validate(architecture), path, words.symbols, self.head)

    def exportable(self, architecture: Architecture) -> Exportable:
        """The subnet with its head, and its dictionary."""
        from fairseq_ext.exporting import masked_lm_exportable
        from nas_core.models.masked_lm.export import encoder_part

        architecture = self.space.validate(architecture)
        part = encoder_part(self.model.net, architecture, self.head, self.model.longest())
        return masked_lm_exportable(self.fairseq_task, part, architecture)
