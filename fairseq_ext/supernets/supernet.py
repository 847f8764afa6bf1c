"""Evaluation, extraction and export of supernets in checkpoints of this package."""

from __future__ import annotations

import json
import math
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from fairseq import utils
from fairseq.data import data_utils, encoders
from torch import Tensor

from fairseq_ext.checkpoint import load_network, model_arguments, read_checkpoint, read_state
from fairseq_ext.criterion import label_smoothing
from fairseq_ext.data import on_device, options_of, split_of
from fairseq_ext.extraction import write_plain, write_subnet
from fairseq_ext.families import family_of
from fairseq_ext.masked_lm import batch_loss, plain_batch
from fairseq_ext.supernets import exporting
from fairseq_ext.supernets.training import TrainingSupernet
from nas_core.device import usable_device
from nas_core.errors import DataError
from nas_core.export.parts import Exportable
from nas_core.layers.smoothed_loss import projected_smoothed_loss
from nas_core.models import kind_of
from nas_core.models.masked_lm.export import encoder_part
from nas_core.models.masked_lm.hugging_face import write_bert
from nas_core.optional import require
from nas_core.precision import check_precision, computing_in
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.host import Report

_BITS = math.log(2)
"""Nats per bit."""
_TOKENS = 4096
"""Largest number of tokens of a batch, unless the model supports longer sequences."""
_BEAM = 5
"""Default beam size of ``fairseq-generate``."""


class FairseqSupernet(TrainingSupernet):
    """Supernet in a checkpoint of this package.

    Args:
        data: folder of ``fairseq-preprocess``; default: the one named in the checkpoint.
        valid_subset: split for evaluation.
        valid_samples: number of random sentences to evaluate, the same each time; default: all.
        precision: precision of evaluations.
    """

    count_key: ClassVar[str] = "ntokens"
    """Key of the number of predictions in a batch."""
    _bleu = False

    def __init__(
        self,
        path: Path,
        data: str | None = None,
        valid_subset: str = "valid",
        valid_samples: int | None = None,
        device: str = "cpu",
        precision: str = "fp32",
    ) -> None:
        self.path, self._data, self._subset, self._sentences = path, data, valid_subset, valid_samples
        self.device = usable_device(device)
        self.precision = check_precision(precision, self.device)
        self._state = read_checkpoint(path)
        self.fairseq_task, model = load_network(path, self._state, data)
        self.model = model.to(self.device)
        self._batches: list[dict[str, Any]] | None = None
        self._smoothing = label_smoothing(self._state)
        self.space: SearchSpace = self.model.space

    @property
    def network(self) -> torch.nn.Module:
        return self.model.net  # type: ignore[no-any-return]

    # -- validation data -----------------------------------------------------------------------------------------------

    def batches(self) -> list[dict[str, Any]]:
        if self._batches is None:
            dataset = split_of(self.fairseq_task, self._subset)
            if dataset is None:
                folder = options_of(self.fairseq_task).data
                raise DataError(f"{folder} has no split {self._subset!r}; give another --valid-subset or --data")
            with data_utils.numpy_seed(0):  # sequences of equal length come in random order
                indices = dataset.ordered_indices()
            if self._sentences is not None and self._sentences < len(indices):
                selected = np.random.default_rng(0).choice(len(indices), self._sentences, replace=False)
                indices = np.asarray(indices)[np.sort(selected)]
            max_positions = self.model.max_positions()
            indices = self.fairseq_task.filter_indices_by_size(
                indices, dataset, max_positions, ignore_invalid_inputs=True
            )
            max_tokens = max(_TOKENS, int(np.max(max_positions)))
            groups = dataset.batch_by_size(indices, max_tokens=max_tokens) if len(indices) else []
            batches = [
                self._prepare_batch(dataset.collater([dataset[int(index)] for index in batch])) for batch in groups
            ]
            self._batches = [batch for batch in batches if batch[self.count_key]]
            if not self._batches:
                raise DataError(
                    f"split {self._subset!r} is empty, or all of its sentences are too long for this network; give"
                    " another --valid-subset or --data"
                )
        return self._batches

    def _prepare_batch(self, batch: dict[str, Any]) -> dict[str, Any]:
        return on_device(batch, self.device)  # type: ignore[no-any-return]

    # -- evaluation ----------------------------------------------------------------------------------------------------

    def evaluate(self, architecture: Architecture, report: Report | None = None) -> dict[str, float]:
        """Return metrics of a subnet with inherited weights; for their units see ``units``."""
        batches = self.batches()
        sums: list[Tensor] = []
        count = 0
        with (
            torch.no_grad(),
            computing_in(self.precision, self.device),
            self.model.use_architecture(self.space.validate(architecture), freeze=True),
        ):
            for index, batch in enumerate(batches, start=1):
                sums.append(torch.stack(self._sums(batch)))
                count += batch[self.count_key]
                if report is not None:
                    report(index / len(batches), self._means(sums, count))
        return self._means(sums, count)

    def _sums(self, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Return the summed loss of a batch with the label smoothing of the training, and without it."""
        features, extra = self.model(**batch["net_input"], features_only=True)
        return projected_smoothed_loss(
            features.flatten(0, 1),
            extra["output"],
            batch["target"].reshape(-1),
            self._smoothing,
            self.fairseq_task.target_dictionary.pad(),
        )

    def _means(self, sums: list[Tensor], count: int) -> dict[str, float]:
        return self._metrics(*(sum(column) / count for column in zip(*torch.stack(sums).tolist(), strict=True)))

    def _metrics(self, loss: float, nll_loss: float) -> dict[str, float]:
        return {"loss": loss / _BITS, "nll_loss": nll_loss / _BITS}

    # -- static networks -----------------------------------------------------------------------------------------------

    def extract(self, architecture: Architecture, path: Path) -> int:
        architecture = self.space.validate(architecture)
        weights = self.model.net.static_state(architecture)
        write_subnet(self._state, weights, architecture, Path(path))
        return sum(tensor.numel() for tensor in weights.values() if tensor.is_floating_point())

    def extract_plain(self, architecture: Architecture, path: Path) -> int:
        return write_plain(self._state, self.model, self.space.validate(architecture), Path(path))


class TranslationSupernet(FairseqSupernet):
    """Translation supernet; ``loss`` (with label smoothing) and ``nll_loss`` are means over target tokens."""

    units: ClassVar = {"loss": "bits per token", "nll_loss": "bits per token"}
    maximised: ClassVar = ("bleu",)

    @property
    def task(self) -> dict[str, Any]:
        source, target = self.fairseq_task.source_dictionary, self.fairseq_task.target_dictionary
        return {"kind": "translation", "source_vocab": len(source), "target_vocab": len(target)}

    def add_metric(self, metric: str) -> None:
        self._bleu = self._bleu or metric == "bleu"

    def evaluate(self, architecture: Architecture, report: Report | None = None) -> dict[str, float]:
        metrics = super().evaluate(architecture, report)
        if self._bleu:
            with computing_in(self.precision, self.device), self.model.use_architecture(architecture, freeze=True):
                metrics["bleu"] = bleu(self.fairseq_task, self.model, self.batches())
        return metrics

    def exportable(self, architecture: Architecture) -> Exportable:
        return exporting.translation_exportable(self.model, self.fairseq_task, self.space.validate(architecture))


class LanguageSupernet(FairseqSupernet):
    """Language model supernet; ``loss`` (with the label smoothing of the training) and ``nll_loss`` are means over
    tokens, ``ppl`` is the perplexity."""

    units: ClassVar = {"loss": "bits per token", "nll_loss": "bits per token", "ppl": ""}

    @property
    def task(self) -> dict[str, Any]:
        return {"kind": "language", "vocab": len(self.fairseq_task.source_dictionary)}

    def _metrics(self, loss: float, nll_loss: float) -> dict[str, float]:
        return {**super()._metrics(loss, nll_loss), "ppl": math.exp(min(nll_loss, 700.0))}

    def exportable(self, architecture: Architecture) -> Exportable:
        return exporting.language_exportable(self.model, self.fairseq_task, self.space.validate(architecture))


class MaskedLMSupernet(FairseqSupernet):
    """Masked language model supernet; ``loss`` is the mean over masked tokens, or over sequences for a classifier.

    All subnets predict the same masked tokens.
    """

    count_key = "count"
    maximised: ClassVar = ("accuracy",)

    def __init__(self, path: Path, *args: Any, **options: Any) -> None:
        super().__init__(path, *args, **options)
        config = self.fairseq_task.cfg
        config.seed = 1  # of the masks
        self.head: str | None = getattr(config, "classification_head_name", None)
        self._regression = bool(getattr(config, "regression_target", False))
        bits = f"bits per {'sequence' if self.head else 'masked token'}"
        self.units = {"loss": "squared error" if self._regression else bits}

    @property
    def task(self) -> dict[str, Any]:
        classes = int(self.fairseq_task.cfg.num_classes) if self.head else 0
        return {"kind": kind_of(self.space).name, "vocab": len(self.fairseq_task.source_dictionary), "classes": classes}

    def _prepare_batch(self, batch: dict[str, Any]) -> dict[str, Any]:
        return plain_batch(batch, self.fairseq_task.source_dictionary.pad(), self.device)

    def _sums(self, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
        return batch_loss(self.model.net, self.model.active_subnet(), batch, self.head)

    def _metrics(self, loss: float, accuracy: float) -> dict[str, float]:
        if self._regression:
            return {"loss": loss}
        return {"loss": loss / _BITS, **({"accuracy": accuracy} if self.head else {})}

    def extract_bert(self, architecture: Architecture, path: Path) -> int:
        dictionary = self.fairseq_task.source_dictionary
        return write_bert(self.model.net, self.space.validate(architecture), path, dictionary.symbols, self.head)

    def exportable(self, architecture: Architecture) -> Exportable:
        architecture = self.space.validate(architecture)
        part = encoder_part(self.model.net, architecture, self.head, self.model.max_length())
        return exporting.masked_lm_exportable(self.fairseq_task, part, architecture)


SUPERNETS: dict[str, type[FairseqSupernet]] = {
    "mos_transformer": TranslationSupernet,
    "mos_transformer_lm": LanguageSupernet,
    "mos_roberta": MaskedLMSupernet,
}
"""fairseq's name of a model -> class of its supernets."""


def open_supernet(path: Path, **options: Any) -> FairseqSupernet:
    """Open a supernet; ``options`` are the arguments of :class:`FairseqSupernet`."""
    args = model_arguments(read_state(path, mmap=True), str(path))
    return SUPERNETS[family_of(args).model](path, **options)


# -- BLEU --------------------------------------------------------------------------------------------------------------


def bleu(task: Any, model: Any, batches: Sequence[dict[str, Any]]) -> float:
    """Return sacrebleu's BLEU (0 to 100) of translations by beam search, with beam 5 and length penalty 1.

    The options ``--eval-bleu-args`` and ``--eval-bleu-remove-bpe`` of the training are used. Detokenized text is
    tokenized by sacrebleu (13a); tokenized text is compared word by word.
    """
    sacrebleu = require("sacrebleu", "the metric bleu", "fairseq")
    options, dictionary = options_of(task), task.target_dictionary
    subwords = getattr(options, "eval_bleu_remove_bpe", None) or _subwords(dictionary.symbols)
    detok = getattr(options, "eval_bleu_detok", "space") or "space"
    arguments = json.loads(getattr(options, "eval_bleu_detok_args", None) or "{}")
    tokenizer = encoders.build_tokenizer(Namespace(tokenizer=detok, **arguments))
    tokenised = getattr(options, "eval_tokenized_bleu", False) or (detok == "space" and subwords != "sentencepiece")
    search = {"beam": _BEAM, **json.loads(getattr(options, "eval_bleu_args", None) or "{}")}
    generator = task.build_generator([model], Namespace(**search))

    def text(tokens: Tensor, unknown: str) -> str:
        sentence = dictionary.string(tokens.int().cpu(), subwords, unk_string=unknown)
        return str(tokenizer.decode(sentence)) if tokenizer is not None else str(sentence)

    translations, references = [], []
    with torch.no_grad():
        for batch in batches:
            best = [hypotheses[0]["tokens"] for hypotheses in task.inference_step(generator, [model], batch)]
            translations += [text(tokens, "UNKNOWN") for tokens in best]
            targets = [utils.strip_pad(target, dictionary.pad()) for target in batch["target"]]
            references += [text(tokens, "NOREFERENCE") for tokens in targets]  # unknown words never match
    return float(sacrebleu.corpus_bleu(translations, [references], tokenize="none" if tokenised else "13a").score)


def _subwords(symbols: Sequence[str]) -> str | None:
    """Return fairseq's name of the subword encoding of a dictionary; None for whole words."""
    if any(symbol.startswith("\u2581") for symbol in symbols):
        return "sentencepiece"
    return "subword_nmt" if any(symbol.endswith("@@") for symbol in symbols) else None
