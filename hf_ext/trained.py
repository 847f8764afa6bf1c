"""Conversion of a trained model into a supernet."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hf_ext.families import PER_LAYER
from hf_ext.folder import SETTINGS, copy_companions, new_folder, read_model, read_texts, save_model
from hf_ext.images import image_batches
from hf_ext.network import FORM, ElasticModel, Subnet, features_of, genes_of, mask_of, trained_architecture
from hf_ext.static import StaticModel, workload_of
from hf_ext.texts import (
    BATCH,
    agreement,
    batches_of,
    check_texts,
    feature_loss,
    head_of,
    mean_pooled,
    open_tokenizer,
    retrieval_loss,
)
from nas_core.device import usable_device
from nas_core.errors import CheckpointError, ConfigError, DataError, SpaceError, UnsupportedError
from nas_core.files.reading import real_path
from nas_core.models.workload import Workload
from nas_core.space import Architecture, Choice, SearchSpace, get_space
from nas_core.supernet.elastic.space_spec import is_auto, resolve
from nas_core.supernet.elastic.spaces import FFN, HEADS, WIDTHS, depths, rounding, size_options

_LENGTHS = (17, 11, 5)
"""Lengths in tokens of the random sentences that verify the conversion."""


def space_around(name: str, genes: dict[str, int], uniform: bool = True) -> SearchSpace:
    """Return a search space ``name`` of networks no larger than the trained one.

    Args:
        uniform: True for the same sizes in all layers, False for sizes :data:`hf_ext.families.PER_LAYER` of each layer.
    """
    head_dim, width = genes["head_dim"], genes["embed_dim"]
    unit, choices = head_dim, []
    if "kv_heads" in genes:
        per_kv = genes["heads_per_kv"]
        groups = [count for count in size_options(genes["kv_heads"], HEADS) if width % (count * per_kv) == 0]
        unit = math.lcm(8, *(count * per_kv for count in groups))  # transformers' rule: the heads divide the width
        choices = [Choice.make("kv_heads", groups)]
    widths = (
        [width] if width % unit or "heads" in genes else [count * unit for count in size_options(width // unit, WIDTHS)]
    )
    sides = {gene: size for gene, size in genes.items() if "." in gene or gene in ("layers", "ffn_dim")}
    choices += [Choice.make(gene, depths(size)) for gene, size in sides.items() if gene.endswith("layers")]
    choices += [Choice.make("embed_dim", widths)]
    choices += [
        Choice.make(gene, size_options(size, FFN, rounding(size)))
        for gene, size in sides.items()
        if gene.endswith("ffn_dim")
    ]
    if not uniform:
        per_layer = [choice for choice in choices if choice.name in PER_LAYER]
        if not per_layer:
            raise ConfigError("layers of networks with an encoder and a decoder cannot differ; leave --no-uniform out")
        choices = [choice for choice in choices if choice not in per_layer]
        choices += [Choice.make(choice.name, choice.options[0], "layers", genes["layers"]) for choice in per_layer]
    searched = {choice.name for choice in choices}
    return SearchSpace(name, choices, {gene: value for gene, value in genes.items() if gene not in searched})


class TrainedModel:
    """Trained model of ``transformers``, to be converted to a supernet.

    Args:
        data: folder with ``train.txt``, ``train.tsv`` (translation, classes of texts) or ``train/CLASS`` (images), for
            calibration.
        uniform: False for a space ``auto`` whose networks may have layers of different sizes.
    """

    form = FORM

    def __init__(
        self,
        folder: Path,
        data: str | None = None,
        space: str = "auto",
        attention: Sequence[str] = ("softmax",),
        calibration_batches: int = 0,
        device: str = "cpu",
        uniform: bool = True,
    ) -> None:
        if set(attention) - {"softmax"}:
            raise ConfigError(
                f"--attention is {','.join(attention)}, but models of transformers have softmax attention; leave it out"
            )
        self.folder, self.data, self.device = folder, data, usable_device(device)
        if (folder / SETTINGS).exists():
            raise CheckpointError(f"{folder} is already a supernet; give the folder of a trained model")
        model = read_model(folder)
        genes = genes_of(model)
        self.space = self._space(space, genes, uniform)
        self._original = copy.deepcopy(model).to(self.device).eval()
        self.net = ElasticModel(model, self.space).to(self.device).eval()
        self.head = head_of(model)
        self.metric = "accuracy" if self.head else "agreement"
        if calibration_batches:
            self.calibration(1)

    def _space(self, spec: str, genes: dict[str, int], uniform: bool) -> SearchSpace:
        if is_auto(spec):
            return resolve(spec, lambda: space_around(f"around-{real_path(self.folder).name}", genes, uniform))
        space = get_space(spec)
        if space.largest() != trained_architecture(space, genes):
            raise SpaceError(
                f"the largest network of space {spec} is {dict(space.largest())}, but the trained network is {genes};"
                f" give a space whose largest network it is, with only {' and '.join(PER_LAYER)} per layer, or auto"
            )
        return space

    def difference(self, net: nn.Module) -> float:
        network: Any = net
        batch = self._random_batch()
        training = network.training
        network.eval()
        with torch.no_grad():
            output = network(network.select(self.space.largest()), batch)
            expected = self._original(**batch, output_hidden_states=True)
        network.train(training)
        features, mask = features_of(output)[..., torch.argsort(network.channels)], mask_of(output, batch)
        pairs = [(features[mask], features_of(expected)[mask])]
        if "logits" in expected:
            pairs.append((output.logits, expected.logits))
        return max(float((x - y).abs().max() / y.abs().max().clamp(min=1e-30)) for x, y in pairs)

    def _random_batch(self) -> dict[str, Tensor]:
        config = self._original.config
        generator = torch.Generator().manual_seed(0)
        if head_of(self._original) == "image":
            shape = (len(_LENGTHS), config.num_channels, config.image_size, config.image_size)
            return {"pixel_values": torch.randn(shape, generator=generator).to(self.device)}
        vocab = min(config.vocab_size, getattr(config, "decoder_vocab_size", None) or config.vocab_size)
        tokens = torch.randint(0, vocab, (len(_LENGTHS), _LENGTHS[0]), generator=generator)
        padding = config.pad_token_id or 0
        tokens = torch.where(tokens == padding, (padding + 1) % vocab, tokens)[:, : config.max_position_embeddings - 2]
        mask = torch.arange(tokens.shape[1]) < torch.tensor(_LENGTHS)[:, None]
        batch = {"input_ids": tokens.where(mask, padding), "attention_mask": mask.long()}
        if head_of(self._original) == "translation":
            batch["labels"] = tokens.where(mask.flip(0), -100)
        return {name: tensor.to(self.device) for name, tensor in batch.items()}

    def calibration(self, count: int) -> Sequence[Any]:
        """Return up to ``count`` batches of 32 texts, pairs of sentences or images of ``train``."""
        if self.head == "image":
            config = self._original.config
            return image_batches(self.folder, self.data, "train", count * BATCH, config, self.device)  # type: ignore[no-any-return]
        stride = max(1, len(self._texts) // (count * BATCH))  # texts of the whole file
        return self._tokenized(self._texts[::stride][: count * BATCH])

    @cached_property
    def _texts(self) -> list[str]:
        texts = read_texts(self.data, "train", self.folder, self.head)
        check_texts(self._tokenizer, texts, self._original.config, self.head)
        return texts

    @cached_property
    def _tokenizer(self) -> Any:
        return open_tokenizer(self.folder)

    def _tokenized(self, texts: Sequence[str], size: int = BATCH, seed: int = 0) -> list[dict[str, Tensor]]:
        return batches_of(self._tokenizer, texts, self._original.config, self.head, self.device, size, seed)

    def loss(self, net: Any, subnet: Subnet, batch: dict[str, Tensor]) -> Tensor:
        """Return the loss of a head for tokens or images, else the distance from the trained model's features."""
        output = net(subnet, batch)
        if "labels" in batch:
            return output.loss  # type: ignore[no-any-return]
        with torch.no_grad():
            teacher = features_of(self._original(**batch, output_hidden_states=True))[..., net.channels]
        features, mask = features_of(output), batch["attention_mask"]
        return feature_loss(features, teacher, mask) + retrieval_loss(features, teacher, mask)

    def save(self, path: Path, net: nn.Module) -> None:
        with new_folder(path) as folder:
            copy_companions(self.folder, folder)
            save_model(self.net.model, folder)
            data = None if self.data is None else str(real_path(self.data))
            self.net.write_settings(folder, teacher=str(real_path(self.folder)), data=data)

    # -- compression, see nas_core.compression.host.Compressible ------------------------------------------------------

    @property
    def original(self) -> nn.Module:
        return self._original  # type: ignore[no-any-return]

    @cached_property
    def multiples(self) -> dict[str, int]:
        """Divisors of reduced sizes: the number of channels stays, and a Llama's heads divide it."""
        genes = genes_of(self._original)
        multiples = {name: genes[name] for name in ("embed_dim", "heads") if name in genes}
        if "kv_heads" not in genes:
            return multiples
        count, width = genes["kv_heads"], genes["embed_dim"]
        per_kv = genes["heads_per_kv"]
        fitting = (m for m in range(1, count + 1) if all(width % (k * per_kv) == 0 for k in range(m, count + 1, m)))
        return {**multiples, "kv_heads": next(fitting, count)}

    def static(self, architecture: Architecture) -> StaticModel:
        return StaticModel(self.net.static_model(self.net.select(architecture)), self.net.family).to(self.device)

    def logits(self, model: Any, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        logits, labels = model(**batch).logits, batch["labels"]
        if self.head == "causal":
            logits, labels = logits[:, :-1], labels[:, 1:]
        mask = labels.ne(-100)
        return logits[mask], labels[mask]

    def distance(self, model: nn.Module, teacher: nn.Module, batch: dict[str, Tensor]) -> Tensor | None:
        """Return the distance of the last hidden states of networks without labels."""
        # With 60 updates of MiniLM, the losses on similarities gave a correlation of 0.80, this distance 0.89.
        if self.head:
            return None
        with torch.no_grad():
            target = _features(teacher, batch)
        return feature_loss(_features(model, batch), target, batch["attention_mask"])

    def agreement(self, model: nn.Module, batches: Sequence[dict[str, Tensor]]) -> dict[str, float] | None:
        """Return the mean distance of the last hidden states, and the :func:`hf_ext.texts.agreement` of sentence
        embeddings in percent, for networks without labels.
        """
        if self.head:
            return None
        losses, embeddings = list[Tensor](), ([], [])
        for batch in batches:
            features = [_features(network, batch) for network in (model, self._original)]
            losses.append(feature_loss(*features, batch["attention_mask"]))
            for pooled, last in zip(embeddings, features, strict=True):
                pooled.append(mean_pooled(last, batch["attention_mask"]))
        metrics = agreement(*(torch.cat(pooled) for pooled in embeddings))
        return {
            "loss": float(torch.stack(losses).mean()),
            self.metric: 100 * metrics["spearman"],
            "retrieval": 100 * metrics["retrieval"],
        }

    def token_masks(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        masks = {"": batch["attention_mask"], "encoder": batch["attention_mask"]}
        if self.head == "translation":
            masks["decoder"] = batch["labels"].ne(-100)
        return {side: masks[side].bool() for side in self.form.sides(self.net)}

    def training_batches(self, batch_size: int, seed: int) -> Iterator[dict[str, Tensor]]:
        if len(self._texts) < batch_size:
            raise DataError(
                f"{self.data} has {len(self._texts)} training texts, fewer than --batch-size {batch_size}; give a"
                " smaller batch size"
            )
        generator = np.random.default_rng(seed)
        while True:
            order = generator.permutation(len(self._texts))
            for start in range(0, len(order) - batch_size + 1, batch_size):
                texts = [self._texts[index] for index in order[start : start + batch_size]]
                yield self._tokenized(texts, batch_size, int(generator.integers(2**31)))[0]

    def held_out(self, count: int) -> Sequence[dict[str, Tensor]]:
        if self.head == "image":
            raise UnsupportedError(
                f"{self.folder} is an image classifier, which compress does not support in this format; convert it with"
                " nas-ext elastic, or give a timm checkpoint"
            )
        texts = read_texts(self.data, "valid", self.folder, self.head)
        check_texts(self._tokenizer, texts, self._original.config, self.head)
        indices = np.random.default_rng(0).permutation(len(texts))[:count]
        return self._tokenized([texts[index] for index in indices], min(BATCH, -(-len(indices) // 2)))

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Number of tokens in latency measurements: the median text, and its translation."""
        batches = self._tokenized(self._texts[:: max(1, len(self._texts) // 1000)])
        masks = [[batch["attention_mask"] for batch in batches]]
        if self.head == "translation":
            masks.append([batch["labels"].ne(-100) for batch in batches])
        return tuple(int(torch.cat([mask.sum(1) for mask in rows]).median()) for rows in masks)

    def workload(self, model: nn.Module, batch: int) -> Workload:
        return workload_of(model, self.lengths, batch, self.device)

    def save_static(self, path: Path, model: Any, kept: Mapping[str, Sequence[int]]) -> int:
        with new_folder(path) as folder:
            save_model(model.model, folder)
            copy_companions(self.folder, folder)
        return sum(parameter.numel() for parameter in model.model.parameters())


def _features(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    return features_of(model(**batch, output_hidden_states=True))
