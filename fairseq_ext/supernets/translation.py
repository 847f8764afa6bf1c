"""Supernets of translation."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from fairseq_ext.checkpoint import write_subnet
from fairseq_ext.elastic.plain import write_plain
from fairseq_ext.supernets.base import TOKENS, FairseqSupernet
from nas_core.precision import computing_in
from nas_core.space import Architecture
from nas_core.supernet.host import Report

if TYPE_CHECKING:
    from nas_core.export import Exportable

__all__ = ["TranslationSupernet"]

_log = logging.getLogger(__name__)


class TranslationSupernet(FairseqSupernet):
    """A ``mos_/hat_transformer`` or ``mformer`` checkpoint. ``loss`` (label-smoothed) and ``nll_loss`` are of each
    token of the targets. ``bleu`` is told where it is asked for, since each sentence is translated for it."""

    units: ClassVar = {"loss": "bits per token", "nll_loss": "bits per token"}
    maximised: ClassVar = ("bleu",)
    _bleu = False
    nothing = "is empty; evaluation needs at least one sentence"
    write_subnet = staticmethod(write_subnet)
    write_plain = staticmethod(write_plain)

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
            from fairseq_ext.supernets.bleu import bleu

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
        from fairseq_ext.exporting import exportable

        return exportable(self.model, self.fairseq_task, self.space.validate(architecture))
