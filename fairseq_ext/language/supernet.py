"""Checkpoints of language models as supernets of ``nas_core``: evaluated with inherited weights, extracted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from fairseq_ext.checkpoint import load_network, read_checkpoint
from fairseq_ext.compat import wrong_input
from fairseq_ext.elastic.batches import on_device
from fairseq_ext.language.checkpoint import write_subnet
from nas_core.device import usable_device
from nas_core.errors import DataError
from nas_core.layers.smoothed_loss import projected_smoothed_loss
from nas_core.precision import check_precision, computing_in
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.host import Report

if TYPE_CHECKING:
    from nas_core.export import Exportable

__all__ = ["LanguageSupernet"]

_TOKENS = 4096
"""Tokens of a batch, or one sequence."""


class LanguageSupernet:
    """A ``mos_/hat_transformer_lm`` or ``mformer_lm`` checkpoint. Validation batches are read once, on the first
    evaluation; a sequence is what the task cuts from the data.

    ``precision`` is that of evaluation, one of :data:`nas_core.precision.PRECISIONS`; what is extracted or exported is
    float32.

    Raises:
        ConfigError: the device is not usable here, or does not compute in this precision.
    """

    units: ClassVar[Mapping[str, str]] = {"loss": "bits per token", "nll_loss": "bits per token", "ppl": ""}

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
        self.task = {"kind": "language", "vocab": len(self.fairseq_task.source_dictionary)}

    def validation(self) -> list[dict[str, Any]]:
        """The batches of the sequences that are evaluated, read once."""
        from fairseq.data import data_utils

        if self._batches is None:
            task = self.fairseq_task
            try:
                task.load_dataset(self._subset, combine=False, epoch=1)
            except FileNotFoundError:
                raise DataError(
                    f"no split {self._subset!r} in {task.args.data}; give another --valid-subset or --data"
                ) from None
            except ValueError as error:
                if message := wrong_input(error):
                    raise DataError(message) from None
                raise
            dataset = task.dataset(self._subset)
            with data_utils.numpy_seed(0):  # sequences of equal length come in random order
                indices = dataset.ordered_indices()
            indices = task.filter_indices_by_size(indices, dataset, self.model.max_positions(), True)
            if self._sentences is not None and self._sentences < len(indices):
                chosen = np.random.default_rng(0).choice(len(indices), self._sentences, replace=False)
                indices = indices[np.sort(chosen)]
            longest = max(_TOKENS, int(self.model.max_positions()))
            cut = dataset.batch_by_size(indices, max_tokens=longest) if len(indices) else []
            batches = [dataset.collater([dataset[int(index)] for index in batch]) for batch in cut]
            if not batches:
                raise DataError(f"split {self._subset!r} is empty; evaluation needs at least one sequence")
            self._batches = [on_device(batch, str(self.device)) for batch in batches]
        return self._batches

    def evaluate(self, architecture: Architecture, report: Report | None = None) -> dict[str, float]:
        """``loss`` (label-smoothed, if training was) and ``nll_loss`` in bits per token with inherited weights, and the
        perplexity ``ppl``; experts are mixed once for all batches. The device is waited for once, at the end, or after
        each batch that is reported."""
        batches = self.validation()
        smoothing, padding = self._smoothing(), self.fairseq_task.source_dictionary.pad()
        parts: list[Tensor] = []
        tokens = 0.0
        with (
            torch.no_grad(),
            computing_in(self.precision, self.device),
            self.model.using(self.space.validate(architecture), freeze=True),
        ):
            for index, batch in enumerate(batches, start=1):
                features, extra = self.model(**batch["net_input"], features_only=True)
                target = batch["target"].reshape(-1)
                sums = projected_smoothed_loss(features.flatten(0, 1), extra["output"], target, smoothing, padding)
                parts.append(torch.stack(sums))
                tokens += batch["ntokens"]
                if report is not None:
                    report(index / len(batches), _per_token(parts, tokens))
        return _per_token(parts, tokens)

    def _smoothing(self) -> float:
        criterion = self._state["cfg"].get("criterion")
        get = criterion.get if hasattr(criterion, "get") else lambda name: getattr(criterion, name, None)
        return float(get("label_smoothing") or 0.0)

    def extract(self, architecture: Architecture, path: Path) -> int:
        """Save the collapsed subnet as a fairseq checkpoint; the number of its parameters."""
        architecture = self.space.validate(architecture)
        weights = self.model.net.static_state(architecture)
        write_subnet(self._state, weights, architecture, Path(path))
        return sum(tensor.numel() for tensor in weights.values() if tensor.is_floating_point())

    def extract_plain(self, architecture: Architecture, path: Path) -> int:
        """Save the collapsed subnet as a checkpoint of fairseq's own ``--arch transformer_lm``; its parameter count.

        Raises:
            ConfigError: its layers are not all alike, or not such as fairseq's are.
        """
        from fairseq_ext.language.plain import write_plain

        return write_plain(self._state, self.model, self.space.validate(architecture), Path(path))

    def exportable(self, architecture: Architecture) -> Exportable:
        """The subnet's prompt and decoding step, with its dictionary."""
        from fairseq_ext.exporting import language_exportable

        return language_exportable(self.model, self.fairseq_task, self.space.validate(architecture))


def _per_token(parts: list[Tensor], tokens: float) -> dict[str, float]:
    """Sums of ``loss`` and ``nll_loss``, (2,) of each batch, in bits per token."""
    loss, nll = (sum(column) / tokens for column in zip(*torch.stack(parts).tolist(), strict=True))
    return {"loss": loss / math.log(2), "nll_loss": nll / math.log(2), "ppl": math.exp(min(nll, 700.0))}
