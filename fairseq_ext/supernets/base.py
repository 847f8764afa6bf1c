"""What the supernets of all families of models do: read validation data, evaluate on it, extract.

Shapes: B batch, T length, C channels, V vocabulary.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from fairseq.data import data_utils
from torch import Tensor

from fairseq_ext.checkpoint import load_network, read_checkpoint
from fairseq_ext.criterion import label_smoothing
from fairseq_ext.data import on_device, options_of, split_of
from fairseq_ext.extraction import write_plain, write_subnet
from fairseq_ext.supernets.training import TrainingSupernet
from nas_core.device import usable_device
from nas_core.errors import DataError
from nas_core.layers.smoothed_loss import projected_smoothed_loss
from nas_core.precision import check_precision, computing_in
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.host import Report

if TYPE_CHECKING:
    from nas_core.export import Exportable

BITS = math.log(2)
"""Nats of a bit."""
TOKENS = 4096
"""What a batch has at most, unless one sequence is longer."""


class FairseqSupernet(TrainingSupernet):
    """A checkpoint of this plug-in's models. Validation batches are read once, on the first evaluation.

    ``precision`` is that of evaluation, one of :data:`nas_core.precision.PRECISIONS`; what is extracted or exported is
    float32. A subclass says what its networks are for (:attr:`task`), in which ``units`` its metrics are, and how a
    checkpoint is written; one that predicts other than each token of a target also how a batch is evaluated.

    Raises:
        ConfigError: the device is not usable here, or does not compute in this precision.
    """

    counted: ClassVar[str] = "ntokens"
    """What of a batch tells how many predictions the sums of its losses are of."""
    nothing: ClassVar[str]
    """How the error ends that tells of a split without anything to evaluate on."""

    def __init__(
        self,
        path: Path,
        data: str | None = None,
        valid_subset: str = "valid",
        valid_sentences: int | None = None,
        device: str = "cpu",
        precision: str = "fp32",
    ) -> None:
        self.path, self._data, self._subset, self._sentences = path, data, valid_subset, valid_sentences
        self.device = usable_device(device)
        self.precision = check_precision(precision, self.device)
        self._state = read_checkpoint(path)
        self.fairseq_task, model = load_network(path, self._state, data)
        self.model = model.to(self.device)
        self._batches: list[dict[str, Any]] | None = None
        self._smoothing = label_smoothing(self._state)
        self.space: SearchSpace = self.model.space

    @property
    @abstractmethod
    def task(self) -> dict[str, Any]:
        """What the networks are for, as plain data."""

    @property
    def network(self) -> torch.nn.Module:
        """What holds the weights; see :class:`nas_core.supernet.host.Supernet`."""
        net: torch.nn.Module = self.model.net
        return net

    # -- validation data -----------------------------------------------------------------------------------------------

    def validation(self) -> list[dict[str, Any]]:
        """The batches that are evaluated, read once.

        Raises:
            DataError: there is no such split, or nothing in it to evaluate on.
        """
        if self._batches is None:
            dataset = split_of(self.fairseq_task, self._subset)
            if dataset is None:
                where = options_of(self.fairseq_task).data
                raise DataError(f"no split {self._subset!r} in {where}; give another --valid-subset or --data")
            with data_utils.numpy_seed(0):  # sequences of equal length come in random order
                indices = dataset.ordered_indices()
            indices = self._evaluated(dataset, indices)
            cut = dataset.batch_by_size(indices, max_tokens=self._most_tokens()) if len(indices) else []
            collated = (dataset.collater([dataset[int(index)] for index in batch]) for batch in cut)
            batches = [self._prepared(batch) for batch in collated if batch]
            batches = [batch for batch in batches if batch[self.counted]]
            if not batches:
                raise DataError(f"split {self._subset!r} {self.nothing}")
            self._batches = batches
        return self._batches

    def _evaluated(self, dataset: Any, indices: Any) -> Any:
        return self._readable(dataset, self._some(indices))

    def _some(self, indices: Any) -> Any:
        """Take as many as were asked for, the same each time."""
        if self._sentences is None or self._sentences >= len(indices):
            return indices
        chosen = np.random.default_rng(0).choice(len(indices), self._sentences, replace=False)
        return np.asarray(indices)[np.sort(chosen)]

    def _readable(self, dataset: Any, indices: Any) -> Any:
        """Without what is longer than the network reads."""
        longest = self.model.max_positions()
        return self.fairseq_task.filter_indices_by_size(indices, dataset, longest, ignore_invalid_inputs=True)

    def _most_tokens(self) -> int:
        return max(TOKENS, int(self.model.max_positions()))

    def _prepared(self, batch: dict[str, Any]) -> dict[str, Any]:
        prepared: dict[str, Any] = on_device(batch, self.device)
        return prepared

    # -- evaluation ----------------------------------------------------------------------------------------------------

    def evaluate(self, architecture: Architecture, report: Report | None = None) -> dict[str, float]:
        """Metrics with inherited weights, in ``units``; experts are mixed once for all batches. The device is
        waited for once, at the end, or after each batch that is reported."""
        batches = self.validation()
        sums: list[Tensor] = []
        count = 0
        with (
            torch.no_grad(),
            computing_in(self.precision, self.device),
            self.model.using(self.space.validate(architecture), freeze=True),
        ):
            for index, batch in enumerate(batches, start=1):
                sums.append(torch.stack(self._sums(batch)))
                count += batch[self.counted]
                if report is not None:
                    report(index / len(batches), self._means(sums, count))
        return self._means(sums, count)

    def batches(self) -> list[dict[str, Any]]:
        """The same as :meth:`validation`."""
        return self.validation()

    def training_loss(self, architecture: Architecture, batch: dict[str, Any]) -> Tensor:
        """The mean loss of a batch's predictions, in nats, with its gradient; without dropout."""
        with (
            torch.enable_grad(),
            computing_in(self.precision, self.device),
            self.model.using(self.space.validate(architecture)),
        ):
            return self._sums(batch)[0] / batch[self.counted]

    def _sums(self, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """The two sums over a batch that :meth:`_metrics` is of: of the losses with the label smoothing of the
        training, and without."""
        features, extra = self.model(**batch["net_input"], features_only=True)
        return projected_smoothed_loss(
            features.flatten(0, 1),
            extra["output"],
            batch["target"].reshape(-1),
            self._smoothing,
            self.fairseq_task.target_dictionary.pad(),
        )

    def _means(self, sums: list[Tensor], count: int) -> dict[str, float]:
        """Metrics of the batches so far: of each the two sums (2,)."""
        return self._metrics(*(sum(column) / count for column in zip(*torch.stack(sums).tolist(), strict=True)))

    def _metrics(self, loss: float, nll_loss: float) -> dict[str, float]:
        """By name, of what one prediction costs in nats."""
        return {"loss": loss / BITS, "nll_loss": nll_loss / BITS}

    # -- static networks -----------------------------------------------------------------------------------------------

    def extract(self, architecture: Architecture, path: Path) -> int:
        """Save the collapsed subnet as a fairseq checkpoint; the number of its parameters."""
        architecture = self.space.validate(architecture)
        weights = self.model.net.static_state(architecture)
        write_subnet(self._state, weights, architecture, Path(path))
        return sum(tensor.numel() for tensor in weights.values() if tensor.is_floating_point())

    def extract_plain(self, architecture: Architecture, path: Path) -> int:
        """Save the collapsed subnet as a checkpoint of a model of fairseq's own; its parameter count.

        Raises:
            ConfigError: its layers are not all alike, or not such as fairseq's are.
        """
        return write_plain(self._state, self.model, self.space.validate(architecture), Path(path))

    @abstractmethod
    def exportable(self, architecture: Architecture) -> Exportable:
        """What of the subnet is exported, with all that using it needs."""
