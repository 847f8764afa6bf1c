"""Conversion of trained ``transformer``, ``transformer_lm`` and ``roberta`` models of fairseq to supernets.

Shapes: B batch, T length, V vocabulary, K classes.
"""

from __future__ import annotations

import copy
import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_REGISTRY
from torch import Tensor, nn

from fairseq_ext.checkpoint import load_network, read_state, write_network
from fairseq_ext.compat import in_groups, options_in
from fairseq_ext.criterion import label_smoothing
from fairseq_ext.data import calibration_batches, on_device, options_of, split_of
from fairseq_ext.elastic.mapping import language_state, masked_lm_state, translation_state
from fairseq_ext.elastic.settings import (
    ACTIVATIONS,
    language_settings,
    masked_lm_settings,
    masked_lm_task,
    translation_settings,
)
from fairseq_ext.extraction import write_subnet
from fairseq_ext.families import LANGUAGE, MASKED_LM, TRANSLATION, Family
from fairseq_ext.masked_lm import batch_loss, plain_batch, stored_heads
from fairseq_ext.model import resolve_linear_lengths, sentence_lengths
from nas_core.device import usable_device
from nas_core.errors import CheckpointError, DataError, UnsupportedError
from nas_core.files.reading import real_path
from nas_core.layers.torch_modes import evaluating
from nas_core.models.elastic import ElasticForm
from nas_core.models.language import LanguageNet
from nas_core.models.language.elastic import LANGUAGE_ELASTIC
from nas_core.models.masked_lm import MaskedLMNet
from nas_core.models.masked_lm.elastic import MASKED_LM_ELASTIC
from nas_core.models.masked_lm.net import ClassHead
from nas_core.models.translation import TranslationNet
from nas_core.models.translation.elastic import TRANSLATION_ELASTIC
from nas_core.models.workload import FIRST_WORD, OnePassWorkload, Workload
from nas_core.random_streams import own_streams
from nas_core.space import Architecture, SearchSpace
from nas_core.space.files import space_to_dict
from nas_core.supernet.elastic import stack_space, translation_space
from nas_core.supernet.elastic.space_spec import space_for

_LENGTHS = (17, 11, 5)
"""Lengths in tokens of the random sentences that verify a conversion."""
_HEADS = "classification_heads."
_ROBERTA_OPTIONS = (
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "pooler_dropout",
    "activation_fn",
    "pooler_activation_fn",
    "encoder_normalize_before",
    "layernorm_embedding",
    "untie_weights_roberta",
    "max_positions",
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Settings of a conversion."""

    data: str | None = None
    """Data folder; default: the one named in the checkpoint."""
    space: str = "auto"
    """Name or file of a search space, or ``auto``; see :func:`nas_core.supernet.elastic.space_spec.space_for`."""
    attention: tuple[str, ...] = ("softmax",)
    """Kinds of attention to choose from in each layer, including softmax."""
    calibration_batches: int = 0
    """Number of calibration batches; 0: no data is needed."""
    device: str = "cpu"


class FairseqTrained:
    """Trained model of fairseq, to be converted to a supernet.

    Implements :class:`nas_core.supernet.elastic.conversion.Trained`.

    Args:
        options: model options for the checkpoint of the supernet.
    """

    form: ClassVar[ElasticForm]
    network: ClassVar[Callable[..., nn.Module]]
    """Class of the supernet."""
    convert_weights: ClassVar[Callable[[Any, Any], dict[str, Tensor]]]
    """Function that converts fairseq's weights to a state dict of the supernet."""
    family: ClassVar[Family]
    metric = "accuracy"
    multiples: Mapping[str, int] = MappingProxyType({})
    reads: ClassVar[tuple[str, ...]] = ("src_tokens",)
    """Names of the network's inputs in a batch of fairseq."""

    def __init__(
        self, path: Path, state: dict[str, Any], space: SearchSpace, request: Request, options: Mapping[str, Any]
    ) -> None:
        self._state, self.space, self._device = state, space, str(usable_device(request.device))
        self.task, model = load_network(path, state, request.data)
        self._model = model.float().to(self._device).eval()
        self._args = Namespace(
            arch=self.family.static,
            data=options_of(self.task).data,
            mos="none",
            search_space=space.name,
            search_space_json=json.dumps(space_to_dict(space)),
            converted=True,
            **{"task": f"supernet_{self.family.task}", **options},
        )
        self.family.fill_in(self._args)
        dictionaries = (self.task.source_dictionary, self.task.target_dictionary)[: len(self.family.sides)]
        with own_streams(0):
            net = self.network(space, *map(len, dictionaries), self._config())
        net.load_state_dict(self.convert_weights(model, net))
        self.net: Any = net.to(self._device).eval()

    def _config(self) -> Any:
        return self.family.network_config(self._args, self.task.source_dictionary.pad(), static=False)

    def difference(self, net: nn.Module) -> float:
        """Return the largest difference between outputs of the supernet and of fairseq's model, relative to the largest
        output."""
        elastic: Any = net
        tokens = self._tokens()
        with evaluating(net), torch.no_grad():
            pairs = self._pairs(elastic, elastic.select(self.space.largest()), *tokens)
        not_padding = tokens[-1].ne(self.task.source_dictionary.pad())
        pairs = [pair if pair[0].ndim < 3 else (pair[0][not_padding], pair[1][not_padding]) for pair in pairs]
        return max(float((outputs - expected).abs().max() / expected.abs().max()) for outputs, expected in pairs)

    def _pairs(self, net: Any, subnet: Any, *tokens: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return pairs of outputs, (B, T, V) or (B, K), of ``net`` and of fairseq's model for the same tokens."""
        return [(net(subnet, *tokens), self._model(*tokens)[0])]

    def _tokens(self) -> tuple[Tensor, ...]:
        """Return random input tokens, one tensor (B, T) per input."""
        generator = torch.Generator().manual_seed(0)
        return (self._random_tokens(self.task.source_dictionary, self.max_positions(), generator),)

    def calibration(self, count: int) -> Sequence[Any]:
        data = self._state["cfg"].get("dataset") or {}
        splits = tuple(str(data.get(f"{name}_subset") or name).split(",")[0] for name in ("train", "valid"))
        return calibration_batches(self.task, splits, self.max_positions(), count, self._device)

    def max_positions(self) -> Any:
        """Return the largest number of input tokens; a pair for translation."""
        return self._model.max_positions()

    def loss(self, net: Any, subnet: Any, batch: Any) -> Tensor:
        """Return the cross-entropy per target token, with the label smoothing of the training."""
        logits = net(subnet, *(batch["net_input"][name] for name in self.reads))
        vocab = logits.shape[-1]
        smoothing = label_smoothing(self._state) * vocab / (vocab - 1)  # fairseq spreads it over the other words
        padding = self.task.target_dictionary.pad()
        return F.cross_entropy(
            logits.flatten(0, 1), batch["target"].flatten(), ignore_index=padding, label_smoothing=min(smoothing, 1.0)
        )

    def save(self, path: Path, net: nn.Module) -> None:
        config: Any = net.config
        args = copy.copy(self._args)
        for name in self.family.orders:
            setattr(args, name, list(getattr(config, name)) or None)
        weights = {f"net.{name}": tensor for name, tensor in net.state_dict().items()}
        write_network(self._state, {**self._state["cfg"], "model": args}, weights, path)

    # -- compression, see nas_core.compression.host.Compressible ------------------------------------------------------

    @property
    def original(self) -> nn.Module:
        return cast(nn.Module, self._model)

    def static(self, architecture: Architecture) -> Any:
        args = copy.copy(self._args)
        vars(args).update(subnet=None, subnet_json=json.dumps(architecture.to_dict()))
        vars(args).update(dict.fromkeys(self.family.orders))
        model = MODEL_REGISTRY[self.family.model].build_model(args, self.task)
        space, self.net.space = self.net.space, model.net.space  # the architecture need not be in the supernet's
        try:
            model.net.load_state_dict(self.net.static_state(architecture))
        finally:
            self.net.space = space
        return model.to(self._device)

    def logits(self, model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        targets = batch["target"]
        mask = targets.ne(self.task.target_dictionary.pad())
        return model(**batch["net_input"])[0][mask], targets[mask]

    def distance(self, model: nn.Module, teacher: nn.Module, batch: Any) -> None:
        return None

    def agreement(self, model: nn.Module, batches: Sequence[Any]) -> None:
        return None

    def token_masks(self, batch: Any) -> dict[str, Tensor]:
        padding = self.task.source_dictionary.pad()
        return {
            side: batch["net_input"][name].ne(padding) for side, name in zip(self.family.sides, self.reads, strict=True)
        }

    def training_batches(self, batch_size: int, seed: int) -> Iterator[Any]:
        dataset = split_of(self.task, "train")
        if dataset is None:
            raise DataError(f"{options_of(self.task).data} has no split 'train'; give the training data as --data")
        batches = self.task.get_batch_iterator(
            dataset, max_sentences=batch_size, max_positions=self.max_positions(), ignore_invalid_inputs=True, seed=seed
        )
        while True:
            for batch in batches.next_epoch_itr(shuffle=True):
                yield on_device(batch, self._device)

    def held_out(self, count: int) -> Sequence[Any]:
        dataset = split_of(self.task, "valid")
        samples = 0 if dataset is None else min(count, len(dataset))
        if samples < 2:
            raise DataError(f"{options_of(self.task).data} has {samples} validation samples; expected two or more")
        sentences = min(64, -(-samples // 2))
        return calibration_batches(
            self.task, ("valid",), self.max_positions(), -(-samples // sentences), self._device, sentences
        )

    def workload(self, model: nn.Module, batch: int) -> Workload:
        length = min(int(options_of(self.task).tokens_per_sample), int(self.max_positions()))
        return OnePassWorkload(model, [torch.full((batch, length), FIRST_WORD)], self._device)

    def save_static(self, path: Path, model: nn.Module, kept: Mapping[str, Sequence[int]]) -> int:
        net: Any = model.net
        state = {**self._state, "cfg": {**self._state["cfg"], "model": self._args}}
        architecture = net.space.largest()
        write_subnet(state, net.static_state(architecture), architecture, path)
        return sum(parameter.numel() for parameter in net.parameters())

    def _random_tokens(
        self, dictionary: Any, max_length: int, generator: torch.Generator, left_pad: bool = False
    ) -> Tensor:
        max_length = min(_LENGTHS[0], max_length)
        tokens = torch.randint(dictionary.nspecial, len(dictionary), (len(_LENGTHS), max_length), generator=generator)
        for row, length in zip(tokens, _LENGTHS, strict=True):
            padding = max(0, max_length - length)
            row[slice(padding) if left_pad else slice(max_length - padding, None)] = dictionary.pad()
        return tokens.to(self._device)


class TrainedTranslation(FairseqTrained):
    """Trained ``transformer`` of fairseq, to be converted to a supernet."""

    form = TRANSLATION_ELASTIC
    network = TranslationNet
    convert_weights = staticmethod(translation_state)
    family = TRANSLATION
    reads = ("src_tokens", "prev_output_tokens")

    def __init__(self, path: Path, state: dict[str, Any], request: Request) -> None:
        args, encoder, decoder = translation_settings(settings_of(state, path), state["cfg"], path)
        head_dim = encoder.embed_dim // encoder.heads
        space = space_for(
            request.space,
            translation_space.trained_genes(encoder, decoder, head_dim),
            lambda: translation_space.auto_space(name_around(path), encoder, decoder, head_dim, request.attention),
        )
        options = {
            "normalize_before": bool(args.encoder_normalize_before),
            "activation_fn": ACTIVATIONS[args.activation_fn],
            "dropout": args.dropout,
            "attention_dropout": args.attention_dropout,
            "activation_dropout": _activation_dropout(args),
            "share_all_embeddings": bool(args.share_all_embeddings),
            "share_decoder_input_output_embed": bool(
                args.share_decoder_input_output_embed or args.share_all_embeddings
            ),
            "positions": "learned" if args.encoder_learned_pos else "stored",
            "embedding_scale": [
                1.0 if args.no_scale_embedding else float(side.embed_dim) ** 0.5 for side in (encoder, decoder)
            ],
            "linear_encoder_length": None,
            "max_source_positions": args.max_source_positions,
            "max_target_positions": args.max_target_positions,
        }
        super().__init__(path, state, space, request, options)

    def _config(self) -> Any:
        resolve_linear_lengths(self._args, self.space, self.task)
        return super()._config()

    def _tokens(self) -> tuple[Tensor, ...]:
        generator = torch.Generator().manual_seed(0)
        source = self._random_tokens(
            self.task.source_dictionary, self._args.max_source_positions, generator, left_pad=True
        )
        return source, self._random_tokens(self.task.target_dictionary, self._args.max_target_positions, generator)

    def _pairs(self, net: Any, subnet: Any, *tokens: Tensor) -> list[tuple[Tensor, Tensor]]:
        source, target = tokens
        lengths = source.ne(self.task.source_dictionary.pad()).sum(1)
        return [(net(subnet, source, target), self._model(source, lengths, target)[0])]

    def workload(self, model: nn.Module, batch: int) -> Workload:
        return _TranslationWorkload(model, self.task, batch, self._device)


class _TranslationWorkload:
    """Workload that translates sentences of the median length of the training data."""

    def __init__(self, model: Any, task: Any, batch: int, device: str) -> None:
        self._model = model.to(device).eval()
        source, target = (int(np.median(sentence_lengths(task, ["train"], [side]))) for side in ("src", "tgt"))
        self._tokens = torch.full((batch, source), FIRST_WORD, device=device)
        self._lengths = torch.full((batch,), source, device=device)
        self._words = torch.full((batch, target), FIRST_WORD, device=device)
        self._memory: Any = None

    @property
    def modules(self) -> Sequence[nn.Module]:
        return [self._model]

    @property
    def components(self) -> Mapping[str, Callable[[], object]]:
        return {"encoder": self._encode, "decoder": self._decode}

    def _encode(self) -> None:
        self._memory = self._model.encoder(self._tokens, src_lengths=self._lengths)

    def _decode(self) -> None:
        state: dict[str, Any] = {}
        for length in range(1, self._words.shape[1] + 1):
            self._model.decoder(self._words[:, :length], encoder_out=self._memory, incremental_state=state)


class TrainedLanguage(FairseqTrained):
    """Trained ``transformer_lm`` of fairseq, to be converted to a supernet."""

    form = LANGUAGE_ELASTIC
    network = LanguageNet
    convert_weights = staticmethod(language_state)
    family = LANGUAGE

    def __init__(self, path: Path, state: dict[str, Any], request: Request) -> None:
        args, sizes = language_settings(settings_of(state, path), state["cfg"], path)
        space = space_for(
            request.space,
            stack_space.trained_genes(sizes, context_length=sizes.length),
            lambda: stack_space.language_around(name_around(path), sizes, request.attention),
        )
        norm_first = bool(args.decoder_normalize_before)
        options = {
            "decoder_normalize_before": norm_first,
            "final_norm": norm_first and not args.no_decoder_final_norm,
            "activation_fn": ACTIVATIONS[args.activation_fn],
            "dropout": float(args.dropout),
            "attention_dropout": float(args.attention_dropout),
            "activation_dropout": _activation_dropout(args),
            "positions": "learned" if args.decoder_learned_pos else "stored",
            "embedding_scale": 1.0 if args.no_scale_embedding else float(sizes.embed_dim) ** 0.5,
            "share_decoder_input_output_embed": bool(args.share_decoder_input_output_embed),
        }
        super().__init__(path, state, space, request, options)


class TrainedMaskedLM(FairseqTrained):
    """Trained ``roberta`` of fairseq with its classification heads, to be converted to a supernet."""

    form = MASKED_LM_ELASTIC
    network = MaskedLMNet
    convert_weights = staticmethod(masked_lm_state)
    family = MASKED_LM

    def __init__(self, path: Path, state: dict[str, Any], request: Request) -> None:
        task = masked_lm_task(state["cfg"], path)
        args, sizes = masked_lm_settings(settings_of(state, path), task, path)
        space = space_for(
            request.space,
            stack_space.trained_genes(sizes),
            lambda: stack_space.masked_lm_around(name_around(path), sizes, request.attention),
        )
        args.load_checkpoint_heads = True
        options = {
            "task": "supernet_masked_lm" if task["_name"] == "masked_lm" else task["_name"],
            "load_checkpoint_heads": True,
            "embedding_scale": 1.0 if args.no_scale_embedding else float(args.encoder_embed_dim) ** 0.5,
            **{option: getattr(args, option) for option in _ROBERTA_OPTIONS},
        }
        super().__init__(path, {**state, "cfg": {**state["cfg"], "model": args, "task": task}}, space, request, options)
        self._state["cfg"]["task"] = {**task, "_name": options["task"]}

    def _config(self) -> Any:
        heads = [ClassHead(name, *sizes) for name, sizes in stored_heads(self._state["model"], _HEADS).items()]
        return replace(super()._config(), classification_heads=tuple(heads))

    def _pairs(self, net: Any, subnet: Any, *tokens: Tensor) -> list[tuple[Tensor, Tensor]]:
        features, expected = net.encode(subnet, *tokens), self._model(*tokens, features_only=True)[0]
        pairs = [(net.predict(subnet, features), self._model(*tokens)[0])]
        for name, head in self._model.classification_heads.items():
            pairs.append((net.classify(subnet, features, name), head(expected)))
        return pairs

    def calibration(self, count: int) -> Sequence[Any]:
        padding = self.task.source_dictionary.pad()
        return [plain_batch(batch, padding, self._device) for batch in super().calibration(count)]

    def held_out(self, count: int) -> Sequence[Any]:
        raise UnsupportedError(
            f"compress does not support masked language models such as {self._state['cfg']['model'].arch}; convert the"
            " model with 'nas-ext elastic'"
        )

    def loss(self, net: Any, subnet: Any, batch: Any) -> Tensor:
        """Return the cross-entropy per masked token or classified sentence, or the squared error of a regression."""
        head = getattr(self.task.cfg, "classification_head_name", None)
        total, _ = batch_loss(net, subnet, batch, head)
        return total / max(batch["count"], 1)


def _activation_dropout(args: Namespace) -> float:
    return float(args.activation_dropout or getattr(args, "relu_dropout", 0.0) or 0.0)


# -- opening -----------------------------------------------------------------------------------------------------------

SOURCES: dict[str, Callable[[Path, dict[str, Any], Request], FairseqTrained]] = {
    "transformer": TrainedTranslation,
    "transformer_lm": TrainedLanguage,
    "roberta": TrainedMaskedLM,
}
"""fairseq's name of a model -> class that converts it."""


def open_trained(path: Path, request: Request) -> FairseqTrained:
    """Open a checkpoint of fairseq's ``transformer``, ``transformer_lm`` or ``roberta`` for conversion."""
    state = in_groups(read_state(path, mmap=True))
    settings = settings_of(state, path)
    if "search_space_json" in settings:
        raise CheckpointError(f"{path} is already a supernet or a subnet; give a trained model of fairseq")
    name = model_name(settings)
    if name not in SOURCES:
        raise CheckpointError(
            f"{path} was trained with --arch {settings.get('arch') or settings.get('_name')}, a model {name!r}, which"
            f" cannot be converted; expected one of {', '.join(SOURCES)}"
        )
    return SOURCES[name](path, state, request)


def name_around(path: Path) -> str:
    """Return a name for a search space: that of the file, or of a parent folder if the file is ``checkpoint*``."""
    path = real_path(path)
    names = (path.stem, *(folder.name for folder in path.parents))
    return f"around-{next(name for name in names if not name.startswith('checkpoint')) or 'checkpoint'}"


def settings_of(state: Mapping[str, Any], path: Path) -> dict[str, Any]:
    if not (settings := dict(options_in((state.get("cfg") or {}).get("model")))):
        raise CheckpointError(f"{path} has no model settings; expected a checkpoint of fairseq-train")
    return settings


def model_name(settings: Mapping[str, Any]) -> str:
    arch = str(settings.get("arch") or settings.get("_name"))
    return arch if arch in MODEL_REGISTRY else str(ARCH_MODEL_NAME_REGISTRY.get(arch, arch))
