"""fairseq checkpoints as supernets of ``nas_core``: opened, evaluated with inherited weights, extracted."""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from fairseq_ext.compat import prepare_fairseq, wrong_input
from fairseq_ext.training_log import training_curves, training_logs
from nas_core.device import usable_device
from nas_core.errors import DataError
from nas_core.files import DAMAGED_ARCHIVE
from nas_core.precision import check_precision, computing_in
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.host import Report, Supernet

if TYPE_CHECKING:
    from nas_core.export import Exportable
    from nas_core.supernet.elastic import Trained
    from nas_core.supernet.exportable import ExportableModel

_LOG2 = float(np.log(2))
_log = logging.getLogger(__name__)


class TranslationSupernet:
    """A ``mos_/hat_transformer`` checkpoint. Validation batches are read once, on the first evaluation.

    ``precision`` is that of evaluation, one of :data:`nas_core.precision.PRECISIONS`; what is extracted or exported is
    float32.

    Raises:
        ConfigError: the device is not usable here, or does not compute in this precision.
    """

    units: ClassVar[Mapping[str, str]] = {"loss": "bits per token", "nll_loss": "bits per token"}

    def __init__(
        self,
        path: Path,
        data: str | None = None,
        valid_subset: str = "valid",
        valid_sentences: int | None = None,
        device: str = "cpu",
        precision: str = "fp32",
    ) -> None:
        from fairseq_ext.checkpoint import load_network, read_checkpoint

        self.path, self._subset, self._sentences = path, valid_subset, valid_sentences
        self.device = usable_device(device)
        self.precision = check_precision(precision, self.device)
        self._state = read_checkpoint(path)
        self.fairseq_task, model = load_network(path, self._state, data)
        self.model = model.to(self.device)
        self._batches: list[dict[str, Any]] | None = None
        self.space: SearchSpace = self.model.space
        self.task = {
            "kind": "translation",
            "source_vocab": len(self.fairseq_task.source_dictionary),
            "target_vocab": len(self.fairseq_task.target_dictionary),
        }

    def validation(self) -> list[dict[str, Any]]:
        """The batches of the sentences that are evaluated, read once."""
        from fairseq import utils
        from fairseq.data import data_utils

        if self._batches is None:
            try:
                self.fairseq_task.load_dataset(self._subset, combine=False, epoch=1)
            except FileNotFoundError:
                raise DataError(
                    f"no split {self._subset!r} in {self.fairseq_task.cfg.data}; give another --valid-subset or --data"
                ) from None
            except ValueError as error:
                if message := wrong_input(error):
                    raise DataError(message) from None
                raise
            dataset = self.fairseq_task.dataset(self._subset)
            with data_utils.numpy_seed(0):  # sentences of equal length come in random order
                indices = dataset.ordered_indices()
            if self._sentences is not None and self._sentences < len(indices):
                chosen = np.random.default_rng(0).choice(len(indices), self._sentences, replace=False)
                indices = indices[np.sort(chosen)]
            indices = self._readable(dataset, indices)
            sampler = dataset.batch_by_size(indices, max_tokens=4096)
            batches = [dataset.collater([dataset[index] for index in batch]) for batch in sampler]
            batches = [batch for batch in batches if batch]
            if not batches:
                raise DataError(f"split {self._subset!r} is empty; evaluation needs at least one sentence")
            self._batches = batches if self.device.type == "cpu" else utils.move_to_cuda(batches, device=self.device)
        return self._batches

    def _readable(self, dataset: Any, indices: Any) -> Any:
        """Without the sentences that the decoder's linear attention cannot read, and how many those are."""
        kept, longer = dataset.filter_indices_by_size(indices, self.model.max_positions())
        if len(longer):
            _log.warning(
                "%d of %d sentences of split %r are longer than this network reads, %s tokens of source and target, and"
                " are left out",
                len(longer),
                len(indices),
                self._subset,
                self.model.max_positions(),
            )
        return kept

    def evaluate(self, architecture: Architecture, report: Report | None = None) -> dict[str, float]:
        """``loss`` (label-smoothed) and ``nll_loss`` in bits per token with inherited weights; experts are mixed
        once for all batches. The device is waited for once, at the end, or after each batch that is reported."""
        from nas_core.layers.smoothed_loss import projected_smoothed_loss

        batches = self.validation()
        smoothing = float(getattr(self._state["cfg"]["criterion"], "label_smoothing", None) or self._smoothing())
        padding = self.fairseq_task.target_dictionary.pad()
        parts: list[Tensor] = []
        tokens = 0.0
        architecture = self.space.validate(architecture)
        with (
            torch.no_grad(),
            computing_in(self.precision, self.device),
            self.model.using(architecture, freeze=True),
        ):
            for index, batch in enumerate(batches, start=1):
                features, extra = self.model(**batch["net_input"], features_only=True)
                part = projected_smoothed_loss(
                    features.flatten(0, 1), extra["output"], batch["target"].view(-1), smoothing, padding
                )
                parts.append(torch.stack(part))
                tokens += batch["ntokens"]
                if report is not None:
                    report(index / len(batches), _per_token(parts, tokens))
        return _per_token(parts, tokens)

    def _smoothing(self) -> float:
        criterion = self._state["cfg"]["criterion"]
        return float(criterion.get("label_smoothing", 0.0)) if hasattr(criterion, "get") else 0.0

    def extract(self, architecture: Architecture, path: Path) -> int:
        """Save the collapsed subnet as a fairseq checkpoint; the number of its parameters."""
        from fairseq_ext.checkpoint import write_subnet

        architecture = self.space.validate(architecture)
        weights = self.model.net.static_state(architecture)
        write_subnet(self._state, weights, architecture, Path(path))
        return sum(tensor.numel() for tensor in weights.values() if tensor.is_floating_point())

    def extract_plain(self, architecture: Architecture, path: Path) -> int:
        """Save the collapsed subnet as a checkpoint of fairseq's own ``--arch transformer``; its parameter count.

        Raises:
            ConfigError: its layers are not all alike, or not such as fairseq's are.
        """
        from fairseq_ext.elastic.plain import write_plain

        return write_plain(self._state, self.model, self.space.validate(architecture), Path(path))

    def exportable(self, architecture: Architecture) -> Exportable:
        """The subnet's encoder and decoding step, with its dictionaries."""
        from fairseq_ext.exporting import exportable

        return exportable(self.model, self.fairseq_task, self.space.validate(architecture))


def _per_token(parts: list[Tensor], tokens: float) -> dict[str, float]:
    """Sums of ``loss`` and ``nll_loss``, (2,) of each batch, in bits per token."""
    loss, nll = (sum(column) for column in zip(*torch.stack(parts).tolist(), strict=True))
    return {"loss": loss / tokens / _LOG2, "nll_loss": nll / tokens / _LOG2}


class FairseqHost:
    """The entry point ``nas_ext.hosts: fairseq``."""

    name = "fairseq"
    training_logs = staticmethod(training_logs)
    training_curves = staticmethod(training_curves)

    def recognises(self, checkpoint: Path) -> bool:
        """fairseq writes torch's zip format, with settings under ``cfg``, before 2021 under ``args``; only the
        archive's pickle is looked at."""
        try:
            with zipfile.ZipFile(checkpoint) as archive:
                record = next(name for name in archive.namelist() if name.endswith("data.pkl"))
                content = archive.read(record)
        except (*DAMAGED_ARCHIVE, StopIteration):
            return False
        return b"optimizer_history" in content and b"args" in content

    def open(self, checkpoint: Path, **options: Any) -> Supernet:
        """Open a supernet; see :class:`nas_core.supernet.host.Host`."""
        _prepare()
        from fairseq_ext.supernets import opened

        return opened(Path(checkpoint), **options)

    def open_exportable(self, checkpoint: Path, **options: Any) -> ExportableModel:
        """Open what can be exported, of fairseq's own models RoBERTa; see
        :class:`nas_core.supernet.exportable.ExportingHost`."""
        _prepare()
        from fairseq_ext.exporting import is_masked_lm, open_masked_lm

        path = Path(checkpoint)
        return open_masked_lm(path, options.get("data")) if is_masked_lm(path) else self.open(path, **options)

    def open_trained(self, checkpoint: Path, **options: Any) -> Trained:
        """Open a trained network of fairseq's own; see :class:`nas_core.supernet.elastic.opening.ElasticHost`."""
        _prepare()
        from fairseq_ext.elastic.kinds import Request, open_trained

        return open_trained(Path(checkpoint), Request(**options))

    def vocabularies(self, data: Path) -> tuple[int, int] | None:
        """Count the entries of both dictionaries, or twice those of the one of a language model's data; see
        :class:`nas_core.supernet.vocabularies.DataHost`."""
        if not any(data.glob("dict*.txt")):
            return None
        _prepare()
        from fairseq_ext.data import vocabulary_sizes

        return vocabulary_sizes(data)


def _prepare() -> None:
    import fairseq_ext  # noqa: F401  registers models and tasks

    prepare_fairseq()
    for name in ("fairseq", "fairseq_ext"):
        logging.getLogger(name).setLevel(logging.WARNING)


HOST = FairseqHost()
