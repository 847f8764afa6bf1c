"""Checkpoints of this plug-in as supernets, one class for each family of models."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from fairseq_ext.checkpoint import read_state
from fairseq_ext.families import family_of
from fairseq_ext.masked_lm import batch_loss, plain_batch
from fairseq_ext.options import model_arguments
from fairseq_ext.supernets import exporting
from fairseq_ext.supernets.base import BITS, TOKENS, FairseqSupernet
from fairseq_ext.supernets.bleu import bleu
from nas_core.models import kind_of
from nas_core.models.masked_lm import write_bert
from nas_core.models.masked_lm.export import encoder_part
from nas_core.precision import computing_in
from nas_core.space import Architecture
from nas_core.supernet.host import Report

if TYPE_CHECKING:
    from nas_core.export import Exportable

_log = logging.getLogger(__name__)


class TranslationSupernet(FairseqSupernet):
    """A ``mos_/hat_transformer`` or ``mformer`` checkpoint. ``loss`` (label-smoothed) and ``nll_loss`` are of each
    token of the targets. ``bleu`` is told where it is asked for, since each sentence is translated for it."""

    units: ClassVar = {"loss": "bits per token", "nll_loss": "bits per token"}
    maximised: ClassVar = ("bleu",)
    _bleu = False
    nothing = "is empty; evaluation needs at least one sentence"

    @property
    def task(self) -> dict[str, Any]:
        source, target = self.fairseq_task.source_dictionary, self.fairseq_task.target_dictionary
        return {"kind": "translation", "source_vocab": len(source), "target_vocab": len(target)}

    def also_evaluate(self, metric: str) -> None:
        """Let :meth:`evaluate` tell ``bleu`` too; see :func:`fairseq_ext.supernets.bleu.bleu`."""
        self._bleu = self._bleu or metric == "bleu"

    def evaluate(self, architecture: Architecture, report: Report | None = None) -> dict[str, float]:
        """Metrics with inherited weights; BLEU too where it is asked for."""
        metrics = super().evaluate(architecture, report)
        if self._bleu:
            with computing_in(self.precision, self.device), self.model.using(architecture, freeze=True):
                metrics["bleu"] = bleu(self.fairseq_task, self.model, self.validation())
        return metrics

    def _opened(self, path: Path) -> Any:
        trained = super()._opened(path)
        trained._bleu = self._bleu
        return trained

    def _readable(self, dataset: Any, indices: Any) -> Any:
        """Without the sentences that the decoder's linear attention cannot read, and how many those are."""
        longest = self.model.max_positions()
        kept, longer = dataset.filter_indices_by_size(indices, longest)
        if len(longer):
            _log.warning(
                "%d of %d sentences of split %r are longer than this network reads, %s tokens of source and target, and"
                " are left out",
                len(longer),
                len(indices),
                self._subset,
                longest,
            )
        return kept

    def _most_tokens(self) -> int:
        return TOKENS

    def exportable(self, architecture: Architecture) -> Exportable:
        """The subnet's encoder and decoding step, with its dictionaries."""
        return exporting.exportable(self.model, self.fairseq_task, self.space.validate(architecture))


class LanguageSupernet(FairseqSupernet):
    """A ``mos_/hat_transformer_lm`` or ``mformer_language`` checkpoint. A sequence is what the task cuts from the data.
    ``loss`` (label-smoothed, if training was) and ``nll_loss`` are of each token, ``ppl`` is the perplexity."""

    units: ClassVar = {"loss": "bits per token", "nll_loss": "bits per token", "ppl": ""}
    nothing = "is empty; evaluation needs at least one sequence"

    @property
    def task(self) -> dict[str, Any]:
        return {"kind": "language", "vocab": len(self.fairseq_task.source_dictionary)}

    def _evaluated(self, dataset: Any, indices: Any) -> Any:
        return self._some(self._readable(dataset, indices))

    def _metrics(self, loss: float, nll_loss: float) -> dict[str, float]:
        return {**super()._metrics(loss, nll_loss), "ppl": math.exp(min(nll_loss, 700.0))}

    def exportable(self, architecture: Architecture) -> Exportable:
        """The subnet's prompt and decoding step, with its dictionary."""
        return exporting.language_exportable(self.model, self.fairseq_task, self.space.validate(architecture))


class MaskedLMSupernet(FairseqSupernet):
    """A ``mos_/hat_roberta`` or ``.._bert`` checkpoint, trained by ``masked_lm`` or ``sentence_prediction``. All are
    asked about the same masked tokens, whatever seed they were trained with. ``loss`` is of each masked token, or of
    each sequence of a classifier, whose ``accuracy`` is told too."""

    counted = "count"
    maximised: ClassVar = ("accuracy",)
    nothing = "has nothing to predict; evaluation needs at least one masked token"

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
        architecture = self.space.validate(architecture)
        part = encoder_part(self.model.net, architecture, self.head, self.model.longest())
        return exporting.masked_lm_exportable(self.fairseq_task, part, architecture)


SUPERNETS: dict[str, type[FairseqSupernet]] = {
    "mos_transformer": TranslationSupernet,
    "mos_transformer_lm": LanguageSupernet,
    "mos_roberta": MaskedLMSupernet,
}
"""Classes of (path, options of ``Host.open``) by the name of ``register_model``."""


def open_supernet(path: Path, **options: Any) -> FairseqSupernet:
    """Open a checkpoint; options as of :class:`nas_core.supernet.host.Host`.

    Raises:
        CheckpointError: the file is damaged or of another model. Others as the classes say.
    """
    args = model_arguments(read_state(path, mmap=True), str(path))
    return SUPERNETS[family_of(args).model](path, **options)
