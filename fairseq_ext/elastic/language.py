"""fairseq's ``--arch transformer_lm*`` as the largest subnet of a supernet of language models.

Shapes: B batch, T length, C channels, V vocabulary.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fairseq_ext.checkpoint import load_network
from fairseq_ext.elastic.kinds import Request, settings_of
from fairseq_ext.elastic.language_settings import LanguageSettings, language_settings
from fairseq_ext.elastic.mapping import language_state
from fairseq_ext.elastic.spaces import name_around, space_around
from fairseq_ext.elastic.trained import FairseqTrained, random_tokens, supernet_settings
from fairseq_ext.families import LANGUAGE
from nas_core.device import usable_device
from nas_core.models.language import LanguageNet
from nas_core.models.language.elastic import LANGUAGE_ELASTIC
from nas_core.space import SearchSpace
from nas_core.supernet.elastic.stack_space import language_around, language_genes


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
        lambda: language_around(name_around(path), settings.sizes, request.attention),
    )
    task, model = load_network(path, state, request.data)
    args = _supernet_settings(settings, space, task)
    config = LANGUAGE.network_config(args, task.source_dictionary.pad(), static=False)
    return TrainedLanguage(state, args, config, space, task, model, device)


class TrainedLanguage(FairseqTrained):
    """A trained language model, with its weights in an elastic network."""

    form = LANGUAGE_ELASTIC
    network = LanguageNet
    mapped = staticmethod(language_state)
    family = LANGUAGE

    def _tokens(self) -> tuple[Tensor, ...]:
        """Random tokens (B, T), padded on the right."""
        stream = torch.Generator().manual_seed(0)
        return (random_tokens(self._task.source_dictionary, self.net.context_length, stream).to(self._device),)


def _supernet_settings(settings: LanguageSettings, space: SearchSpace, task: Any) -> Namespace:
    """Options of a supernet around the network, as this plug-in's models have them in their checkpoints."""
    config, sizes = settings.config, settings.sizes
    first = bool(config.decoder_normalize_before)
    return supernet_settings(
        LANGUAGE,
        task,
        space,
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
