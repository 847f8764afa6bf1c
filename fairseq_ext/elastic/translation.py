"""fairseq's ``--arch transformer*`` as the largest subnet of a translation supernet.

Shapes: B batch, S/T source and target length, C channels, Q joint width of the queries, V vocabulary.
"""

from __future__ import annotations

import copy
import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import Tensor, nn

from fairseq_ext.checkpoint import load_network, write_network
from fairseq_ext.criterion import label_smoothing
from fairseq_ext.elastic.batches import calibration_batches
from fairseq_ext.elastic.kinds import Request, settings_of
from fairseq_ext.elastic.mapping import translation_state
from fairseq_ext.elastic.spaces import space_around
from fairseq_ext.elastic.supported import TransformerSettings, transformer_settings
from fairseq_ext.lengths import resolve_linear_lengths
from fairseq_ext.options import model_config
from nas_core.device import usable_device
from nas_core.layers import MoSConfig
from nas_core.models.translation import TranslationNet
from nas_core.models.translation.elastic import TRANSLATION_ELASTIC
from nas_core.random_streams import own_streams
from nas_core.space import SearchSpace, space_to_dict
from nas_core.supernet.elastic.translation_space import auto_space, trained_genes
from nas_core.supernet.teacher import weights_digest

__all__ = ["TrainedTranslation", "open_translation"]

_KEPT = ("dropout", "attention_dropout", "share_all_embeddings", "share_decoder_input_output_embed")
_LENGTHS = ("max_source_positions", "max_target_positions")
_PLAIN, _MIXED = "hat_transformer", "mos_transformer"


def open_translation(path: Path, state: dict[str, Any], request: Request) -> TrainedTranslation:
    """Open a checkpoint of fairseq's ``transformer``.

    Raises:
        ConfigError: a part of it has no elastic form. SpaceError: the space does not contain it. CheckpointError,
        DataError: see :func:`fairseq_ext.checkpoint.load_network`.
    """
    device = str(usable_device(request.device))
    sizes = transformer_settings(settings_of(state, path), state["cfg"], path)
    space = space_around(
        request.space,
        trained_genes(sizes.encoder, sizes.decoder, sizes.head_dim),
        lambda: auto_space(f"around-{path.stem}", sizes.encoder, sizes.decoder, sizes.head_dim, request.attention),
    )
    task, model = load_network(path, state, request.data)
    return TrainedTranslation(state, sizes, space, task, model, device)


class TrainedTranslation:
    """A trained transformer, with its weights in an elastic network; see
    :class:`nas_core.supernet.elastic.take_over.Trained`."""

    form = TRANSLATION_ELASTIC

    def __init__(
        self, state: dict[str, Any], sizes: TransformerSettings, space: SearchSpace, task: Any, model: Any, device: str
    ) -> None:
        self._state, self._task, self._model, self._device = state, task, model.float().to(device).eval(), device
        self.space = space
        self._words = len(task.source_dictionary), len(task.target_dictionary)
        self._args = _supernet_settings(sizes, space, task)
        config = model_config(self._args, task.source_dictionary.pad(), static=False)
        with own_streams(0):
            net = TranslationNet(space, *self._words, config)
        net.load_state_dict(translation_state(model, net))
        self.net = net.to(device).eval()

    def difference(self, net: nn.Module) -> float:
        """The largest difference between logits (B, T, V) of a padded batch where there is no padding, over the
        largest."""
        source, target = self._sentences()
        subnet = net.select(self.space.largest())  # type: ignore[operator]
        with torch.no_grad():
            expected = self._model(source, source.ne(self._task.source_dictionary.pad()).sum(1), target)[0]
            training = net.training
            found = net.eval()(subnet, source, target)
            net.train(training)
        read = target.ne(self._task.target_dictionary.pad())[..., None]
        return float(((found - expected) * read).abs().max() / (expected * read).abs().max())

    def _sentences(self) -> tuple[Tensor, Tensor]:
        """Random sources (B, S), padded on the left, and targets (B, T), padded on the right."""
        stream, rows = torch.Generator().manual_seed(0), []
        lengths = (17, 11, 5)
        for words, limit, left in (("source", "max_source_positions", True), ("target", "max_target_positions", False)):
            dictionary = getattr(self._task, f"{words}_dictionary")
            longest = min(lengths[0], getattr(self._args, limit))
            tokens = torch.randint(dictionary.nspecial, len(dictionary), (len(lengths), longest), generator=stream)
            for row, length in zip(tokens, lengths, strict=True):
                missing = max(0, longest - length)
                row[:missing] = dictionary.pad() if left else row[:missing]
                if not left and missing:
                    row[-missing:] = dictionary.pad()
            rows.append(tokens.to(self._device))
        return rows[0], rows[1]

    def calibration(self, count: int) -> Sequence[Any]:
        """Batches of training data, or of validation data where there is no training data; see
        :func:`fairseq_ext.elastic.batches.calibration_batches`."""
        data = self._state["cfg"].get("dataset") or {}
        splits = tuple(str(data.get(f"{name}_subset") or name).split(",")[0] for name in ("train", "valid"))
        return calibration_batches(self._task, splits, self._model.max_positions(), count, self._device)

    def loss(self, net: Any, subnet: Any, batch: Any) -> Tensor:
        """Cross-entropy per target token, with the label smoothing that the network was trained with."""
        words = batch["net_input"]
        logits = net(subnet, words["src_tokens"], words["prev_output_tokens"])
        smoothing = (
            label_smoothing(self._state) * logits.shape[-1] / (logits.shape[-1] - 1)
        )  # fairseq spreads it over others
        padding = self._task.target_dictionary.pad()
        return F.cross_entropy(
            logits.flatten(0, 1), batch["target"].flatten(), ignore_index=padding, label_smoothing=min(smoothing, 1.0)
        )

    def with_experts(self, mos: str) -> TranslationNet:
        """The same network with experts of that kind and random weights."""
        config = replace(self.net.config, mos=MoSConfig(kind=mos))
        with own_streams(0):
            return TranslationNet(self.space, *self._words, config).to(self._device).eval()

    def save(self, path: Path, net: nn.Module) -> None:
        """Write what ``fairseq-train --task supernet_translation`` trains on, and every command opens."""
        config: Any = net.config
        args = copy.copy(self._args)
        args.arch = _PLAIN if config.mos.kind == "none" else _MIXED
        args.mos, args.mos_experts = config.mos.kind, config.mos.experts
        args.mos_router_hidden, args.mos_router_layers = config.mos.router_hidden, config.mos.router_layers
        args.encoder_order, args.decoder_order = list(config.encoder_order) or None, list(config.decoder_order) or None
        weights = {f"net.{name}": tensor for name, tensor in net.state_dict().items()}
        args.taken_over = weights_digest(weights)  # tells this order of channels from that of another take-over
        write_network(self._state, {**copy.deepcopy(self._state["cfg"]), "model": args}, weights, path)


def _supernet_settings(sizes: TransformerSettings, space: SearchSpace, task: Any) -> Namespace:
    """Options of a supernet around the network, as this plug-in's models have them in their checkpoints."""
    config = sizes.config
    args = Namespace(
        arch=_PLAIN,
        task="supernet_translation",
        data=task.cfg.data,
        mos="none",
        search_space=space.name,
        search_space_json=json.dumps(space_to_dict(space)),
        taken_over=True,
        normalize_before=bool(config.encoder.normalize_before),
        activation_fn=sizes.activation,
        activation_dropout=float(config.activation_dropout or config.relu_dropout or 0.0),
        positions="learned" if config.encoder.learned_pos else "stored",
        embedding_scale=[
            1.0 if config.no_scale_embedding else float(side.embed_dim) ** 0.5
            for side in (sizes.encoder, sizes.decoder)
        ],
        linear_encoder_length=None,
        **{name: getattr(config, name) for name in (*_KEPT, *_LENGTHS)},
    )
    args.share_all_embeddings = bool(args.share_all_embeddings)
    args.share_decoder_input_output_embed = bool(args.share_decoder_input_output_embed or args.share_all_embeddings)
    ARCH_CONFIG_REGISTRY[_PLAIN](args)
    resolve_linear_lengths(args, space, task)
    return args
