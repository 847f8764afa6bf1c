"""Supernets of trained models: evaluation with inherited weights, and extraction as folders."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hf_ext.exporting import exportable
from hf_ext.folder import SETTINGS, copy_companions, new_folder, read_model, read_texts, save_model
from hf_ext.images import MAX_IMAGES, image_batches
from hf_ext.network import ElasticModel, features_of, read_settings, read_supernet
from hf_ext.texts import agreement, batches_of, bleu, check_texts, head_of, mean_pooled, open_tokenizer
from nas_core.device import usable_device
from nas_core.errors import ConfigError, DataError
from nas_core.export.parts import Exportable
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json
from nas_core.space import Architecture
from nas_core.supernet.host import Report, Supernet

Evaluate = Callable[[Any], Mapping[str, float]]
_POOLED = ("embedding_dimension", "word_embedding_dimension")
"""Names of the number of channels in the pooling of sentence-transformers, from version 6 on and before."""


class HuggingFaceSupernet(Supernet):
    """Supernet in a folder that ``nas-ext elastic`` or :class:`hf_ext.SupernetTrainer` wrote.

    ``loss`` is that of the model's head, in nats: of masked tokens, of the next token (with ``perplexity``), of the
    tokens of translations (``add_metric("bleu")`` adds ``bleu``), or of the classes of texts or images (with
    ``accuracy``).
    Without one of these heads, sentence embeddings (means over tokens) are compared with the trained model's:
    ``spearman`` and ``retrieval`` (see :func:`hf_ext.texts.agreement`), and ``loss``, which is 1 - ``spearman``.

    Args:
        data: folder with a text file for each subset, or with a folder of images by class.
        valid_subset: name of the file or folder that is evaluated, without ``.txt`` or ``.tsv``.
        valid_samples: number of its lines or images; default: all lines, or 500 images.
        evaluate: function of a subnet, as a model of ``transformers``, that returns metrics with ``loss`` among them.
    """

    maximised = ("spearman", "retrieval", "accuracy", "bleu")

    def __init__(
        self,
        folder: Path | str,
        data: Path | str | None = None,
        valid_subset: str = "valid",
        valid_samples: int | None = None,
        device: str = "cpu",
        evaluate: Evaluate | None = None,
    ) -> None:
        self.folder, self.device = Path(folder), usable_device(device)
        self._settings = read_settings(self.folder)
        self.elastic: ElasticModel = read_supernet(self.folder).to(self.device)
        self.space = self.elastic.space
        self._data, self._subset, self._count = data or self._settings.get("data"), valid_subset, valid_samples
        self._evaluate = evaluate
        self._evaluated: list[dict[str, Tensor]] | None = None
        self._teacher: Tensor | None = None
        self.head = head_of(self.elastic.model)
        self._classifies = self.head in ("class", "image")
        self.units = {"loss": "nats"} if self.head else {}
        self._bleu = False
        config = self.elastic.model.config
        if self.head == "image":
            activation = "relu" if config.hidden_act == "relu" else "gelu"
            sizes = {"classes": config.num_labels, "channels": config.num_channels, "activation": activation}
        elif self.head == "translation":
            sizes = {"source_vocab": config.vocab_size, "target_vocab": config.decoder_vocab_size}
        else:
            classes = {"masked": 0, "class": config.num_labels}.get(self.head, 1)
            sizes = {"vocab": config.vocab_size, "classes": classes}
        self.task = {"kind": self.elastic.family.kind, **sizes}

    # -- evaluation ----------------------------------------------------------------------------------------------------

    def batches(self) -> list[dict[str, Tensor]]:
        config = self.elastic.model.config
        if self._evaluated is None and self.head == "image":
            self._evaluated = image_batches(
                self.folder, self._data, self._subset, self._count or MAX_IMAGES, config, self.device
            )
        if self._evaluated is None:
            tokenizer, texts = open_tokenizer(self.folder), self._texts()
            check_texts(tokenizer, texts, config, self.head)
            self._evaluated = batches_of(tokenizer, texts, config, self.head, self.device)
        return self._evaluated

    def _texts(self) -> list[str]:
        return read_texts(self._data, self._subset, self.folder, self.head)[: self._count]

    def add_metric(self, metric: str) -> None:
        self._bleu = self._bleu or (metric == "bleu" and self.head == "translation")

    def evaluate(self, architecture: Architecture, report: Report | None = None) -> dict[str, float]:
        subnet = self.elastic.select(self.space.validate(architecture))
        if self._evaluate is not None:
            metrics = dict(self._evaluate(self.elastic.static_model(subnet)))
            if "loss" not in metrics:
                raise ConfigError(
                    f"evaluate returned the metrics {', '.join(metrics) or 'none'}; expected 'loss' among them"
                )
            return metrics
        batches, outputs = self.batches(), []
        with torch.no_grad():
            for index, batch in enumerate(batches):
                output = self.elastic(subnet, batch, training=False)
                if self.head:
                    labels = batch["labels"][:, 1:] if self.head == "causal" else batch["labels"]
                    count = labels.ne(-100).sum()
                    loss = output.loss.double() * count if count else output.loss.new_zeros(())
                    correct = (
                        (output.logits.argmax(-1) == labels).sum() if self._classifies else torch.zeros_like(count)
                    )
                    outputs.append(torch.stack([loss, correct, count]))
                else:
                    outputs.append(mean_pooled(features_of(output), batch["attention_mask"]))
                if report is not None and self.head:
                    report((index + 1) / len(batches), self._metrics(outputs))
        if self.head:
            metrics = self._metrics(outputs)
            if self._bleu:
                references = [text.split("\t")[1] for text in self._texts()]
                model = self.elastic.static_model(subnet).to(self.device)
                metrics["bleu"] = bleu(model, open_tokenizer(self.folder), batches, references)
            return metrics
        metrics = agreement(torch.cat(outputs), self.teacher_embeddings())
        return {"loss": 1 - metrics["spearman"], **metrics}

    def _metrics(self, sums: Sequence[Tensor]) -> dict[str, float]:
        """Return the metrics of a head from loss, correct labels and labels of each batch."""
        total, correct, count = torch.stack(list(sums)).sum(0).tolist()
        metrics = {"loss": total / max(count, 1)}
        if self.head == "causal":
            metrics["perplexity"] = math.exp(metrics["loss"])
        if self._classifies:
            metrics["accuracy"] = correct / max(count, 1)
        return metrics

    def teacher_embeddings(self) -> Tensor:
        """Return the trained model's sentence embeddings (N, C) of the evaluation texts."""
        if self._teacher is None:
            path = Path(str(self._settings.get("teacher")))
            if not path.is_dir():
                raise DataError(
                    f"{path} does not exist, the trained model with which {self.folder} is compared; move it there, or"
                    f" set its path as 'teacher' in {self.folder / SETTINGS}"
                )
            model = read_model(path).to(self.device)
            with torch.no_grad():
                outputs = [(model(**batch, output_hidden_states=True), batch) for batch in self.batches()]
            pooled = [mean_pooled(features_of(output), batch["attention_mask"]) for output, batch in outputs]
            self._teacher = torch.cat(pooled)
        return self._teacher

    # -- extraction ----------------------------------------------------------------------------------------------------

    def extract(self, architecture: Architecture, path: Path) -> int:
        """Save a subnet as a folder for ``AutoModel.from_pretrained``; return its number of parameters.

        If layers differ in size, the folder contains code and is loaded with ``trust_remote_code=True``.
        """
        subnet = self.elastic.select(self.space.validate(architecture))
        width, trained = subnet.sizes["hidden_size"], self.elastic.model.config.hidden_size
        modules = _modules(self.folder) if width != trained else {}
        unsupported = [kind for kind in modules.values() if not kind.endswith(("Transformer", "Pooling", "Normalize"))]
        if unsupported:
            raise ConfigError(
                f"module {unsupported[0]} in {self.folder} needs {trained} channels, but the subnet has {width}; search"
                " networks of the trained width (--space auto:layers,ffn_dim)"
            )
        with new_folder(Path(path)) as folder:
            model = self.elastic.static_model(subnet)
            save_model(model, folder)
            copy_companions(self.folder, folder)
            for subfolder, kind in modules.items():
                file = folder / subfolder / "config.json"
                if kind.endswith("Pooling") and file.is_file():
                    write_json(
                        file, {name: width if name in _POOLED else value for name, value in read_json(file).items()}
                    )
        return sum(parameter.numel() for parameter in model.parameters())

    extract_plain = extract_bert = extract

    def exportable(self, architecture: Architecture) -> Exportable:
        architecture = self.space.validate(architecture)
        return exportable(self.elastic.static_model(self.elastic.select(architecture)), architecture)

    # -- studies -------------------------------------------------------------------------------------------------------

    @property
    def network(self) -> Any:
        return self.elastic


def _modules(folder: Path) -> dict[str, str]:
    """Return the modules of a sentence-transformers model: subfolder -> class name."""
    file = folder / "modules.json"
    modules: Iterable[Any] = read_json(file) if file.is_file() else ()
    return {str(module.get("path")): str(module.get("type")) for module in modules if isinstance(module, dict)}
