"""Supernets of trained encoders: evaluation of subnets, and extraction as folders for ``transformers``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hf_ext.folder import SETTINGS, copy_companions, new_folder, read_model, read_texts, save_model
from hf_ext.network import ElasticEncoder, features_of, read_settings, read_supernet
from hf_ext.texts import agreement, batches_of, feature_loss, mean_pooled, open_tokenizer
from nas_core.device import usable_device
from nas_core.errors import ConfigError, DataError
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json
from nas_core.space import Architecture
from nas_core.supernet.host import Report, Supernet

Evaluate = Callable[[Any], Mapping[str, float]]


class HuggingFaceSupernet(Supernet):
    """Supernet in a folder that ``nas-ext elastic`` or :class:`hf_ext.SupernetTrainer` wrote.

    For a masked language model, ``loss`` is the masked-token loss in nats. For other models it is 1 - ``spearman``,
    Spearman's correlation of the pairwise cosine similarities of sentences in the subnet and in the trained model.

    Args:
        data: folder with text files, one text per line; default: the folder given in the conversion.
        valid_subset: text file used for evaluation, without ``.txt``.
        valid_sentences: number of texts; default: all.
        evaluate: function that evaluates a subnet, given as a model of ``transformers``, and returns metrics with
            ``loss`` among them; default: evaluation on ``data``.
    """

    maximised = ("spearman",)

    def __init__(
        self,
        folder: Path | str,
        data: Path | str | None = None,
        valid_subset: str = "valid",
        valid_sentences: int | None = None,
        device: str = "cpu",
        evaluate: Evaluate | None = None,
    ) -> None:
        self.folder, self.device = Path(folder), usable_device(device)
        self._settings = read_settings(self.folder)
        self.encoder: ElasticEncoder = read_supernet(self.folder).to(self.device)
        self.space = self.encoder.space
        self._data, self._subset, self._count = data or self._settings.get("data"), valid_subset, valid_sentences
        self._evaluate = evaluate
        self._evaluated: list[dict[str, Tensor]] | None = None
        self._teacher: Tensor | None = None
        self.masked = type(self.encoder.model).__name__.endswith("ForMaskedLM")
        self.units = {"loss": "nats"} if self.masked else {}
        vocabulary = self.encoder.model.config.vocab_size
        self.task = {"kind": "masked_lm", "vocab": vocabulary, "classes": 0 if self.masked else 1}

    # -- evaluation ----------------------------------------------------------------------------------------------------

    def batches(self) -> list[dict[str, Tensor]]:
        if self._evaluated is None:
            texts = read_texts(self._data, self._subset, self.folder)[: self._count]
            vocabulary = self.encoder.model.config.vocab_size
            tokenizer = open_tokenizer(self.folder)
            self._evaluated = batches_of(tokenizer, texts, vocabulary, self.masked, self.device)
        return self._evaluated

    def evaluate(self, architecture: Architecture, report: Report | None = None) -> dict[str, float]:
        subnet = self.encoder.select(self.space.validate(architecture))
        if self._evaluate is not None:
            metrics = dict(self._evaluate(self.encoder.static_model(subnet)))
            if "loss" not in metrics:
                raise ConfigError(
                    f"evaluate returned the metrics {', '.join(metrics) or 'none'}; expected 'loss' among them"
                )
            return metrics
        batches, outputs = self.batches(), []
        with torch.no_grad():
            for index, batch in enumerate(batches):
                output = self.encoder(subnet, batch, training=False)
                if self.masked:
                    count = batch["labels"].ne(-100).sum()
                    outputs.append(
                        torch.stack([output.loss.double() * count if count else output.loss.new_zeros(()), count])
                    )
                else:
                    outputs.append(mean_pooled(features_of(output), batch["attention_mask"]))
                if report is not None and self.masked:
                    report((index + 1) / len(batches), _mean_loss(outputs))
        if self.masked:
            return _mean_loss(outputs)
        spearman = agreement(torch.cat(outputs), self.teacher_embeddings())
        return {"loss": 1 - spearman, "spearman": spearman}

    def teacher_embeddings(self) -> Tensor:
        """Return the trained model's sentence embeddings (N, C) of the evaluation texts."""
        if self._teacher is None:
            place = Path(str(self._settings.get("teacher")))
            if not place.is_dir():
                raise DataError(
                    f"{place} does not exist, the trained model with which {self.folder} is compared; move it there, or"
                    f" set its path as 'teacher' in {self.folder / SETTINGS}"
                )
            model = read_model(place).to(self.device)
            with torch.no_grad():
                outputs = [(model(**batch, output_hidden_states=True), batch) for batch in self.batches()]
            pooled = [mean_pooled(features_of(output), batch["attention_mask"]) for output, batch in outputs]
            self._teacher = torch.cat(pooled)
        return self._teacher

    # -- extraction ----------------------------------------------------------------------------------------------------

    def extract(self, architecture: Architecture, path: Path) -> int:
        """Save a subnet as a folder for ``AutoModel.from_pretrained``; return its number of parameters."""
        subnet = self.encoder.select(self.space.validate(architecture))
        width, trained = subnet.sizes["hidden_size"], self.encoder.model.config.hidden_size
        modules = _modules(self.folder) if width != trained else {}
        others = [kind for kind in modules.values() if not kind.endswith(("Transformer", "Pooling", "Normalize"))]
        if others:
            raise ConfigError(
                f"module {others[0]} in {self.folder} needs {trained} channels, but the subnet has {width}; search"
                " networks of the trained width (--space auto:layers,ffn_dim)"
            )
        with new_folder(Path(path)) as folder:
            model = self.encoder.static_model(subnet)
            save_model(model, folder)
            copy_companions(self.folder, folder)
            for place, kind in modules.items():
                file = folder / place / "config.json"
                if kind.endswith("Pooling") and file.is_file():
                    write_json(file, {**read_json(file), "word_embedding_dimension": width})
        return sum(parameter.numel() for parameter in model.parameters())

    extract_plain = extract_bert = extract

    # -- studies -------------------------------------------------------------------------------------------------------

    @property
    def network(self) -> Any:
        return self.encoder

    def training_loss(self, architecture: Architecture, batch: Any) -> Tensor:
        """Return the masked-token loss, or for other models the distance from the largest subnet's features."""
        subnet = self.encoder.select(self.space.validate(architecture))
        with torch.enable_grad():
            output = self.encoder(subnet, batch, training=False)
        if self.masked:
            return output.loss  # type: ignore[no-any-return]
        with torch.no_grad():
            largest = self.encoder(self.encoder.select(self.space.largest()), batch, training=False)
        return feature_loss(features_of(output), features_of(largest), batch["attention_mask"])


def _mean_loss(sums: Sequence[Tensor]) -> dict[str, float]:
    total, count = torch.stack(list(sums)).sum(0).tolist()
    return {"loss": total / max(count, 1)}


def _modules(folder: Path) -> dict[str, str]:
    """Return the modules of a sentence-transformers model: subfolder -> class name."""
    file = folder / "modules.json"
    listed: Iterable[Any] = read_json(file) if file.is_file() else ()
    return {str(module.get("path")): str(module.get("type")) for module in listed if isinstance(module, dict)}
