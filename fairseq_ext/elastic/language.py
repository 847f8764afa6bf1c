"""fairseq's ``--arch transformer_lm*`` as the largest subnet of a supernet of language models.

Shapes: B batch, T length, C channels, V vocabulary.
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
from torch import Tensor, nn

from fairseq_ext.checkpoint import load_network, write_network
from fairseq_ext.elastic.batches import calibration_batches
from fairseq_ext.elastic.kinds import Request, settings_of
from fairseq_ext.elastic.language_settings import LanguageSettings, language_settings
from fairseq_ext.elastic.mapping import layer_state, positions_table
from fairseq_ext.elastic.spaces import space_around
from fairseq_ext.language.checkpoint import STATIC
from fairseq_ext.language.options import base_architecture, network_config
from nas_core.device import usable_device
from nas_core.layers import MoSConfig
from nas_core.models.language import LanguageNet
from nas_core.models.language.elastic import LANGUAGE_ELASTIC
from nas_core.random_streams import own_streams
from nas_core.space import SearchSpace, space_to_dict
from nas_core.supernet.elastic.kinds import with_kinds
from nas_core.supernet.elastic.stack_space import language_around, language_genes
from nas_core.supernet.teacher import weights_digest

__all__ = ["TrainedLanguage", "language_state", "open_language"]

_MIXED = "mos_transformer_lm"


def open_language(path: Path, state: dict[str, Any], request: Request) -> TrainedLanguage:
    """Open a checkpoint of fairseq's ``transformer_lm``.

    Raises:
        ConfigError: a part of it has no elastic form. SpaceError: the space does not contain it. CheckpointError,
        DataError: see :func:`fairseq_ext.checkpoint.load_network`.
    """
    device = str(usable_device(request.device))
    settings = language_settings(settings_of(state, path), state["cfg"], path)
    space = space_around(
        request.space,
        language_genes(settings.sizes),
        lambda: language_around(f"around-{path.stem}", settings.sizes, request.attention),
    )
    task, model = load_network(path, state, request.data)
    task.cfg = task.args  # fairseq's tasks of this age keep their options under another name
    return TrainedLanguage(state, settings, space, task, model, device)


class TrainedLanguage:
    """A trained language model, with its weights in an elastic network; see
    :class:`nas_core.supernet.elastic.take_over.Trained`."""

    form = LANGUAGE_ELASTIC

    def __init__(
        self, state: dict[str, Any], settings: LanguageSettings, space: SearchSpace, task: Any, model: Any, device: str
    ) -> None:
        self._state, self._task, self._model, self._device = state, task, model.float().to(device).eval(), device
        self.space = space
        self._args = _supernet_settings(settings, space, task)
        config = network_config(self._args, task.source_dictionary.pad(), static=False)
        with own_streams(0):
            net = LanguageNet(space, len(task.source_dictionary), config)
        net.load_state_dict(language_state(model, net))
        self.net = net.to(device).eval()

    def difference(self, net: nn.Module) -> float:
        """The largest difference between logits (B, T, V) of a padded batch where there is no padding, over the
        largest."""
        words, tokens = self._task.source_dictionary, self._sentences()
        subnet = net.select(self.space.largest())  # type: ignore[operator]
        with torch.no_grad():
            expected = self._model(tokens)[0]
            training = net.training
            found = net.eval()(subnet, tokens)
            net.train(training)
        read = tokens.ne(words.pad())[..., None]
        return float(((found - expected) * read).abs().max() / (expected * read).abs().max())

    def _sentences(self) -> Tensor:
        """Random tokens (B, T), padded on the right."""
        words, stream = self._task.source_dictionary, torch.Generator().manual_seed(0)
        lengths = [min(length, self.net.context_length) for length in (17, 11, 5)]
        tokens = torch.randint(words.nspecial, len(words), (len(lengths), lengths[0]), generator=stream)
        for row, length in zip(tokens, lengths, strict=True):
            row[length:] = words.pad()
        return tokens.to(self._device)

    def calibration(self, count: int) -> Sequence[Any]:
        """Batches of training data, or of validation data where there is no training data; see
        :func:`fairseq_ext.elastic.batches.calibration_batches`."""
        data = self._state["cfg"].get("dataset") or {}
        splits = tuple(str(data.get(f"{name}_subset") or name).split(",")[0] for name in ("train", "valid"))
        return calibration_batches(self._task, splits, self._model.max_positions(), count, self._device)

    def loss(self, net: Any, subnet: Any, batch: Any) -> Tensor:
        """Cross-entropy per token, with the label smoothing that the network was trained with."""
        logits = net(subnet, batch["net_input"]["src_tokens"])
        smoothing = (
            _smoothing(self._state) * logits.shape[-1] / (logits.shape[-1] - 1)
        )  # fairseq spreads it over others
        padding = self._task.target_dictionary.pad()
        return F.cross_entropy(
            logits.flatten(0, 1), batch["target"].flatten(), ignore_index=padding, label_smoothing=min(smoothing, 1.0)
        )

    def with_experts(self, mos: str) -> LanguageNet:
        """The same network with experts of that kind and random weights."""
        config = replace(self.net.config, mos=MoSConfig(kind=mos))
        with own_streams(0):
            return LanguageNet(self.space, len(self._task.source_dictionary), config).to(self._device).eval()

    def save(self, path: Path, net: nn.Module) -> None:
        """Write what ``fairseq-train --task supernet_language_modeling`` trains on, and every command opens."""
        config: Any = net.config
        args = copy.copy(self._args)
        args.arch = STATIC if config.mos.kind == "none" else _MIXED
        args.mos, args.mos_experts = config.mos.kind, config.mos.experts
        args.mos_router_hidden, args.mos_router_layers = config.mos.router_hidden, config.mos.router_layers
        args.layer_order = list(config.layer_order) or None
        weights = {f"net.{name}": tensor for name, tensor in net.state_dict().items()}
        args.taken_over = weights_digest(weights)  # tells this order of channels from that of another take-over
        write_network(self._state, {**copy.deepcopy(self._state["cfg"]), "model": args}, weights, path)


def language_state(model: Any, net: Any) -> dict[str, Tensor]:
    """The weights of fairseq's ``transformer_lm`` as the state of a :class:`nas_core.models.language.LanguageNet` whose
    largest network it is."""
    decoder, table = model.decoder, model.decoder.embed_tokens.weight
    state: dict[str, Tensor] = {"reference_width": net.reference_width, "embedding.weight": table}
    state["output.weight"] = decoder.output_projection.weight
    state["positions.table"] = positions_table(decoder.embed_positions, net.context_length, table.shape[1])
    for index, layer in enumerate(decoder.layers):
        state |= layer_state(f"layers.{index}.", layer)
    if decoder.layer_norm is not None:
        state |= {f"norm.{kind}": getattr(decoder.layer_norm, kind) for kind in ("weight", "bias")}
    return with_kinds(state, net)


def _supernet_settings(settings: LanguageSettings, space: SearchSpace, task: Any) -> Namespace:
    """Options of a supernet around the network, as this plug-in's models have them in their checkpoints."""
    config, sizes = settings.config, settings.sizes
    first = bool(config.decoder_normalize_before)
    args = Namespace(
        arch=STATIC,
        task="supernet_language_modeling",
        data=task.args.data,
        mos="none",
        search_space=space.name,
        search_space_json=json.dumps(space_to_dict(space)),
        taken_over=True,
        decoder_normalize_before=first,
        final_norm=first and not config.no_decoder_final_norm,
        activation_fn=settings.activation,
        dropout=float(config.dropout),
        attention_dropout=float(config.attention_dropout),
        activation_dropout=float(config.activation_dropout or config.relu_dropout or 0.0),
        positions="learned" if config.decoder_learned_pos else "stored",
        embedding_scale=1.0 if config.no_scale_embedding else float(sizes.embed_dim) ** 0.5,
        share_decoder_input_output_embed=bool(config.share_decoder_input_output_embed),
    )
    base_architecture(args)
    return args


def _smoothing(state: dict[str, Any]) -> float:
    criterion = state["cfg"].get("criterion")
    settings = criterion if isinstance(criterion, dict) else vars(criterion) if criterion is not None else {}
    return float(settings.get("label_smoothing") or 0.0)
