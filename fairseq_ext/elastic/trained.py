"""fairseq's own ``transformer``, ``transformer_lm`` and ``roberta`` as the largest subnet of a supernet.

Shapes: B batch, S/T source and target length, V vocabulary, K classes.
"""

from __future__ import annotations

import copy
import json
import logging
from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_REGISTRY
from torch import Tensor, nn

from fairseq_ext.checkpoint import load_network, read_state, write_network
from fairseq_ext.compat import in_groups, options_in
from fairseq_ext.criterion import label_smoothing
from fairseq_ext.data import calibration_batches, options_of
from fairseq_ext.elastic.mapping import language_state, masked_lm_state, translation_state
from fairseq_ext.elastic.settings import (
    ACTIVATIONS,
    language_settings,
    masked_lm_settings,
    masked_lm_task,
    translation_settings,
)
from fairseq_ext.elastic.spaces import name_around, space_around
from fairseq_ext.families import LANGUAGE, MASKED_LM, TRANSLATION, Family
from fairseq_ext.masked_lm import batch_loss, plain_batch, stored_heads
from fairseq_ext.model import resolve_linear_lengths
from nas_core.device import usable_device
from nas_core.errors import CheckpointError
from nas_core.layers import MoSConfig
from nas_core.models.elastic import ElasticForm
from nas_core.models.language import LanguageNet
from nas_core.models.language.elastic import LANGUAGE_ELASTIC
from nas_core.models.masked_lm import MaskedLMNet
from nas_core.models.masked_lm.elastic import MASKED_LM_ELASTIC
from nas_core.models.masked_lm.net import ClassHead
from nas_core.models.translation import TranslationNet
from nas_core.models.translation.elastic import TRANSLATION_ELASTIC
from nas_core.random_streams import own_streams
from nas_core.space import SearchSpace
from nas_core.space.files import space_to_dict
from nas_core.supernet.elastic import stack_space, translation_space
from nas_core.supernet.teacher.cache import weights_digest

_log = logging.getLogger(__name__)

_LENGTHS = (17, 11, 5)
"""Sentence lengths in tokens for comparing outputs, limited to the network's longest input."""
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
    """Data folder, if it has moved since training."""
    space: str = "auto"
    """Name or file of a space, or a spec of :func:`nas_core.supernet.elastic.space_spec.resolve`."""
    attention: tuple[str, ...] = ("softmax",)
    """Kinds of attention for each layer, including softmax."""
    calibrate: int = 0
    """Batches that measure importance; 0 needs no data."""
    device: str = "cpu"


class FairseqTrained(ABC):
    """A trained network as an elastic network; see :class:`nas_core.supernet.elastic.conversion.Trained`.

    By default, the network predicts next tokens.

    Args:
        options: model options for the supernet's checkpoint.
    """

    form: ClassVar[ElasticForm]
    network: ClassVar[Callable[..., nn.Module]]
    """Elastic network of a space, vocabulary sizes and settings."""
    mapped: ClassVar[Callable[[Any, Any], dict[str, Tensor]]]
    """Function that converts fairseq's weights to the elastic network's state."""
    family: ClassVar[Family]
    reads: ClassVar[tuple[str, ...]] = ("src_tokens",)
    """Network inputs in a batch, by name."""

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
            taken_over=True,
            **{"task": f"supernet_{self.family.task}", **options},
        )
        self.family.fill_in(self._args)
        net = self._network(self._config())
        net.load_state_dict(self.mapped(model, net))
        self.net: Any = net.to(self._device).eval()

    def _config(self) -> Any:
        return self.family.network_config(self._args, self.task.source_dictionary.pad(), static=False)

    def _network(self, config: Any) -> nn.Module:
        with own_streams(0):
            return self.network(self.space, *self._vocabularies(), config)

    def _vocabularies(self) -> tuple[int, ...]:
        return (len(self.task.source_dictionary),)

    def difference(self, net: nn.Module) -> float:
        """Return the largest difference between logits (B, T, V) at tokens, relative to the largest logit."""
        tokens = self._tokens()
        subnet = net.select(self.space.largest())  # type: ignore[operator]
        with torch.no_grad():
            expected = self._logits(*tokens)
            training = net.training
            outputs = net.eval()(subnet, *tokens)
            net.train(training)
        read = tokens[-1].ne(self.task.target_dictionary.pad())[..., None]
        return float(((outputs - expected) * read).abs().max() / (expected * read).abs().max())

    @abstractmethod
    def _tokens(self) -> tuple[Tensor, ...]:
        """Return random inputs, each (B, T); outputs are compared at the tokens of the last one."""

    def _logits(self, *tokens: Tensor) -> Tensor:
        return self._model(*tokens)[0]  # type: ignore[no-any-return]

    def calibration(self, count: int) -> Sequence[Any]:
        """Return training batches, else validation batches."""
        data = self._state["cfg"].get("dataset") or {}
        splits = tuple(str(data.get(f"{name}_subset") or name).split(",")[0] for name in ("train", "valid"))
        return calibration_batches(self.task, splits, self.longest(), count, self._device)

    def longest(self) -> Any:
        """Return the longest input in tokens, by side."""
        return self._model.max_positions()

    def loss(self, net: Any, subnet: Any, batch: Any) -> Tensor:
        """Return the cross-entropy per target token, with the training's label smoothing."""
        logits = net(subnet, *(batch["net_input"][name] for name in self.reads))
        words = logits.shape[-1]
        smoothing = label_smoothing(self._state) * words / (words - 1)  # fairseq spreads it over the other words
        padding = self.task.target_dictionary.pad()
        return F.cross_entropy(
            logits.flatten(0, 1), batch["target"].flatten(), ignore_index=padding, label_smoothing=min(smoothing, 1.0)
        )

    def with_experts(self, mos: str) -> nn.Module:
        return self._network(replace(self.net.config, mos=MoSConfig(kind=mos))).to(self._device).eval()

    def save(self, path: Path, net: nn.Module) -> None:
        config: Any = net.config
        args = copy.copy(self._args)
        args.arch = self.family.static if config.mos.kind == "none" else self.family.model
        args.mos, args.mos_experts = config.mos.kind, config.mos.experts
        args.mos_router_hidden, args.mos_router_layers = config.mos.router_hidden, config.mos.router_layers
        for name in self.family.orders:
            setattr(args, name, list(getattr(config, name)) or None)
        weights = {f"net.{name}": tensor for name, tensor in net.state_dict().items()}
        args.taken_over = weights_digest(weights)  # identifies this order of channels
        write_network(self._state, {**self._groups(args), "model": args}, weights, path)

    def _groups(self, args: Namespace) -> dict[str, Any]:
        return copy.deepcopy(self._state["cfg"])

    def _random_tokens(self, words: Any, longest: int, stream: torch.Generator, left: bool = False) -> Tensor:
        """Return sentences (B, T) of different lengths, padded on the right or ``left``."""
        longest = min(_LENGTHS[0], longest)
        tokens = torch.randint(words.nspecial, len(words), (len(_LENGTHS), longest), generator=stream)
        for row, length in zip(tokens, _LENGTHS, strict=True):
            missing = max(0, longest - length)
            row[slice(missing) if left else slice(longest - missing, None)] = words.pad()
        return tokens.to(self._device)


class TrainedTranslation(FairseqTrained):
    """fairseq's ``transformer``."""

    form = TRANSLATION_ELASTIC
    network = TranslationNet
    mapped = staticmethod(translation_state)
    family = TRANSLATION
    reads = ("src_tokens", "prev_output_tokens")

    def __init__(self, path: Path, state: dict[str, Any], request: Request) -> None:
        args, encoder, decoder = translation_settings(settings_of(state, path), state["cfg"], path)
        head_dim = encoder.embed_dim // encoder.heads
        space = space_around(
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

    def _vocabularies(self) -> tuple[int, ...]:
        return len(self.task.source_dictionary), len(self.task.target_dictionary)

    def _tokens(self) -> tuple[Tensor, ...]:
        stream = torch.Generator().manual_seed(0)
        source = self._random_tokens(self.task.source_dictionary, self._args.max_source_positions, stream, left=True)
        return source, self._random_tokens(self.task.target_dictionary, self._args.max_target_positions, stream)

    def _logits(self, *tokens: Tensor) -> Tensor:
        source, target = tokens
        return super()._logits(source, source.ne(self.task.source_dictionary.pad()).sum(1), target)


class TrainedLanguage(FairseqTrained):
    """fairseq's ``transformer_lm``."""

    form = LANGUAGE_ELASTIC
    network = LanguageNet
    mapped = staticmethod(language_state)
    family = LANGUAGE

    def __init__(self, path: Path, state: dict[str, Any], request: Request) -> None:
        args, sizes = language_settings(settings_of(state, path), state["cfg"], path)
        space = space_around(
            request.space,
            stack_space.language_genes(sizes),
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

    def _tokens(self) -> tuple[Tensor, ...]:
        stream = torch.Generator().manual_seed(0)
        return (self._random_tokens(self.task.source_dictionary, self.net.context_length, stream),)


class TrainedMaskedLM(FairseqTrained):
    """fairseq's ``roberta``, with its classification heads."""

    form = MASKED_LM_ELASTIC
    network = MaskedLMNet
    mapped = staticmethod(masked_lm_state)
    family = MASKED_LM

    def __init__(self, path: Path, state: dict[str, Any], request: Request) -> None:
        task = masked_lm_task(state["cfg"], path)
        args, sizes = masked_lm_settings(settings_of(state, path), task, path)
        space = space_around(
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

    def _config(self) -> Any:
        heads = [ClassHead(name, *sizes) for name, sizes in stored_heads(self._state["model"], _HEADS).items()]
        return replace(super()._config(), classification_heads=tuple(heads))

    def difference(self, net: nn.Module) -> float:
        """Return the largest relative difference between logits (B, T, V) at tokens, or (B, K) of a head."""
        (tokens,) = self._tokens()
        read = tokens.ne(self.task.source_dictionary.pad())
        elastic: Any = net
        training = net.training
        net.eval()
        with torch.no_grad():
            subnet = elastic.select(self.space.largest())
            features, _ = self._model(tokens, features_only=True)
            ours = elastic.encode(subnet, tokens)
            pairs = [(elastic.predict(subnet, ours)[read], self._model(tokens)[0][read])]
            for name, head in self._model.classification_heads.items():
                pairs.append((elastic.classify(subnet, ours, name), head(features)))
        net.train(training)
        return max(float((outputs - expected).abs().max() / expected.abs().max()) for outputs, expected in pairs)

    def _tokens(self) -> tuple[Tensor, ...]:
        stream = torch.Generator().manual_seed(0)
        return (self._random_tokens(self.task.source_dictionary, self.longest(), stream),)

    def calibration(self, count: int) -> Sequence[Any]:
        padding = self.task.source_dictionary.pad()
        return [plain_batch(batch, padding, self._device) for batch in super().calibration(count)]

    def longest(self) -> int:
        return int(self._args.max_positions)

    def loss(self, net: Any, subnet: Any, batch: Any) -> Tensor:
        """Return the cross-entropy per masked token or classified sentence; for a regression, the squared error."""
        head = getattr(self.task.cfg, "classification_head_name", None)
        total, _ = batch_loss(net, subnet, batch, head)
        return total / max(batch["count"], 1)

    def _groups(self, args: Namespace) -> dict[str, Any]:
        groups = super()._groups(args)
        groups["task"]["_name"] = args.task
        return groups


def _activation_dropout(args: Namespace) -> float:
    return float(args.activation_dropout or getattr(args, "relu_dropout", 0.0) or 0.0)


# -- opening -----------------------------------------------------------------------------------------------------------

SOURCES: dict[str, Callable[[Path, dict[str, Any], Request], FairseqTrained]] = {
    "transformer": TrainedTranslation,
    "transformer_lm": TrainedLanguage,
    "roberta": TrainedMaskedLM,
}
"""Classes by fairseq's model name."""


def open_trained(path: Path, request: Request) -> FairseqTrained:
    """Open a checkpoint of a model in :data:`SOURCES`."""
    state = in_groups(read_state(path, mmap=True))
    settings = settings_of(state, path)
    if "search_space_json" in settings:
        raise CheckpointError(f"{path} is a supernet or one of its subnets already; give a model of fairseq's own")
    name = model_name(settings)
    if name not in SOURCES:
        raise CheckpointError(
            f"{path} was trained with --arch {settings.get('arch') or settings.get('_name')}, a model {name!r};"
            f" expected one of {', '.join(SOURCES)}, others have no elastic form"
        )
    trained = SOURCES[name](path, state, request)
    for option in ("encoder_layerdrop", "decoder_layerdrop"):
        if float(settings.get(option) or 0.0):
            _log.warning("--%s %s is not converted: a supernet trains all layers of a subnet",
                         option.replace("_", "-"), settings[option])  # fmt: skip
    return trained


def settings_of(state: Mapping[str, Any], path: Path) -> dict[str, Any]:
    config: Any = state.get("cfg")
    settings = dict(options_in(config.get("model"))) if hasattr(config, "get") else {}
    if not settings:
        raise CheckpointError(f"{path} holds no settings of its model; expected a checkpoint written by fairseq-train")
    return settings


def model_name(settings: Mapping[str, Any]) -> str:
    arch = str(settings.get("arch") or settings.get("_name"))
    return arch if arch in MODEL_REGISTRY else str(ARCH_MODEL_NAME_REGISTRY.get(arch, arch))
