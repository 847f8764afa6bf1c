"""fairseq's ``--arch transformer*`` as the largest subnet of a translation supernet.

Shapes: B batch, S/T source and target length, C channels, Q joint width of the queries, V vocabulary.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fairseq_ext.checkpoint import load_network
from fairseq_ext.elastic.kinds import Request, settings_of
from fairseq_ext.elastic.mapping import translation_state
from fairseq_ext.elastic.spaces import name_around, space_around
from fairseq_ext.elastic.supported import TransformerSettings, transformer_settings
from fairseq_ext.elastic.trained import FairseqTrained, random_tokens, supernet_settings
from fairseq_ext.families import TRANSLATION
from fairseq_ext.lengths import resolve_linear_lengths
from nas_core.device import usable_device
from nas_core.models.translation import TranslationNet
from nas_core.models.translation.elastic import TRANSLATION_ELASTIC
from nas_core.space import SearchSpace
from nas_core.supernet.elastic.translation_space import auto_space, trained_genes

_KEPT = ("dropout", "attention_dropout", "share_all_embeddings", "share_decoder_input_output_embed")
_LENGTHS = ("max_source_positions", "max_target_positions")


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
        lambda: auto_space(name_around(path), sizes.encoder, sizes.decoder, sizes.head_dim, request.attention),
    )
    task, model = load_network(path, state, request.data)
    args = _supernet_settings(sizes, space, task)
    config = TRANSLATION.network_config(args, task.source_dictionary.pad(), static=False)
    return TrainedTranslation(state, args, config, space, task, model, device)


class TrainedTranslation(FairseqTrained):
    """A trained transformer, with its weights in an elastic network."""

    form = TRANSLATION_ELASTIC
    network = TranslationNet
    mapped = staticmethod(translation_state)
    family = TRANSLATION
    reads = ("src_tokens", "prev_output_tokens")

    def _vocabularies(self) -> tuple[int, ...]:
        return len(self._task.source_dictionary), len(self._task.target_dictionary)

    def _tokens(self) -> tuple[Tensor, ...]:
        """Random sources (B, S), padded on the left, and targets (B, T), padded on the right."""
        stream = torch.Generator().manual_seed(0)
        source = random_tokens(self._task.source_dictionary, self._args.max_source_positions, stream, left=True)
        target = random_tokens(self._task.target_dictionary, self._args.max_target_positions, stream)
        return source.to(self._device), target.to(self._device)

    def _logits(self, *tokens: Tensor) -> Tensor:
        source, target = tokens
        return super()._logits(source, source.ne(self._task.source_dictionary.pad()).sum(1), target)


def _supernet_settings(sizes: TransformerSettings, space: SearchSpace, task: Any) -> Namespace:
    """Options of a supernet around the network, as this plug-in's models have them in their checkpoints."""
    config = sizes.config
    args = supernet_settings(
        TRANSLATION,
        task,
        space,
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
    resolve_linear_lengths(args, space, task)
    return args
