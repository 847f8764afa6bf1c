"""Supernets of language models."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from fairseq_ext.language.checkpoint import write_subnet
from fairseq_ext.language.plain import write_plain
from fairseq_ext.supernets.base import FairseqSupernet
from nas_core.space import Architecture

if TYPE_CHECKING:
    from nas_core.export import Exportable

__all__ = ["LanguageSupernet"]


class LanguageSupernet(FairseqSupernet):
    """A ``mos_/hat_transformer_lm`` or ``mformer_language`` checkpoint. A sequence is what the task cuts from the data.
    ``loss`` (label-smoothed, if training was) and ``nll_loss`` are of each token, ``ppl`` is the perplexity."""

    units: ClassVar = {"loss": "bits per token", "nll_loss": "bits per token", "ppl": ""}
    nothing = "is empty; evaluation needs at least one sequence"
    write_subnet = staticmethod(write_subnet)
    write_plain = staticmethod(write_plain)

    @property
    def task(self) -> dict[str, Any]:
        return {"kind": "language", "vocab": len(self.fairseq_task.source_dictionary)}

    def _evaluated(self, dataset: Any, indices: Any) -> Any:
        return self._some(self._readable(dataset, indices))

    def _metrics(self, loss: float, nll_loss: float) -> dict[str, float]:
        return {**super()._metrics(loss, nll_loss), "ppl": math.exp(min(nll_loss, 700.0))}

    def exportable(self, architecture: Architecture) -> Exportable:
        """The subnet's prompt and decoding step, with its dictionary."""
        from fairseq_ext.exporting import language_exportable

        return language_exportable(self.model, self.fairseq_task, self.space.validate(architecture))
