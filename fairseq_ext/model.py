"""Translation networks with fairseq's interface."""

from __future__ import annotations

import logging
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np
import torch
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from numpy.typing import NDArray
from torch import Tensor

from fairseq_ext.families import TRANSLATION
from fairseq_ext.supernet_model import ModelPart, SupernetModel, register
from nas_core.errors import ConfigError
from nas_core.models.translation.genes import bounded
from nas_core.models.translation.net import Subnet, length_limits
from nas_core.space import Architecture, SearchSpace

logger = logging.getLogger(__name__)

_CACHE = "nas_ext_cache"
"""Key of the attention cache in fairseq's incremental state."""
_STEP = 8
"""The length scale of linear attention is rounded up to a multiple of this number of tokens."""
_FAR = 5
"""Ratio between the length scale and the median length above which a warning is logged."""


class Encoder(ModelPart, FairseqEncoder):  # type: ignore[misc]
    """Encoder with fairseq's interface, which runs the active architecture."""

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **_: Any) -> dict[str, list[Any]]:
        subnet = self.model.active_subnet()
        return {"subnet": [subnet], "memory": [self.model.net.encode(subnet, src_tokens)], "order": [None]}

    def reorder_encoder_out(self, encoder_out: dict[str, list[Any]], new_order: Tensor) -> dict[str, list[Any]]:
        # Only the row numbers are reordered: in decoding, the decoder caches keys and values.
        order = encoder_out["order"][0]
        return {**encoder_out, "order": [new_order if order is None else order.index_select(0, new_order)]}

    def max_positions(self) -> int:
        return self.model.max_length("source")


class Decoder(ModelPart, FairseqIncrementalDecoder):  # type: ignore[misc]
    """Decoder with fairseq's interface."""

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Any]],
        incremental_state: dict[str, Any] | None = None,
        features_only: bool = False,
        **_: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        net = self.model.net
        subnet: Subnet = encoder_out["subnet"][0]
        memory, order = encoder_out["memory"][0], encoder_out["order"][0]
        if incremental_state is None:
            features = net.decode_features(
                subnet, prev_output_tokens, memory if order is None else memory.reorder(order)
            )
        else:
            if _CACHE not in incremental_state:
                incremental_state[_CACHE] = net.start(subnet, memory, order)
            cache = incremental_state[_CACHE]
            if cache.length + 1 == self.max_positions():
                logger.warning(
                    "a translation was cut off at %d tokens, the longest that this model supports", cache.length + 1
                )
            features = net.step_features(subnet, prev_output_tokens[:, -1], cache)[:, None]
        return output_of(features, subnet, features_only)

    def reorder_incremental_state(self, incremental_state: dict[str, Any], new_order: Tensor) -> None:
        if _CACHE in incremental_state:
            incremental_state[_CACHE].reorder(new_order)

    def max_positions(self) -> int:
        return self.model.max_length("target")


def output_of(features: Tensor, subnet: Any, features_only: bool) -> tuple[Tensor, dict[str, Any]]:
    """Return logits (B, T, V), or with ``features_only`` features (B, T, C) and output embeddings (V, C)."""
    if features_only:
        # torch's DDP searches for parameters behind what a forward returns, and finds no parameter returned itself
        return features, {"attn": [None], "output": subnet.output.view_as(subnet.output)}
    return torch.nn.functional.linear(features, subnet.output), {"attn": [None]}


@register
class TranslationModel(SupernetModel[Subnet], FairseqEncoderDecoderModel):  # type: ignore[misc]
    """Supernet of translation networks, or a static network with ``--subnet``."""

    trained_by = "mos_transformer*, hat_transformer*, mformer_wmt14*, mformer_translation* or cosformer*"
    family = TRANSLATION

    def __init__(self, args: Namespace, net: Any, source_dictionary: Any, target_dictionary: Any) -> None:
        super().__init__(Encoder(self, source_dictionary), Decoder(self, target_dictionary))
        self.hold(args, net)

    @classmethod
    def of_space(
        cls, args: Namespace, task: Any, space: SearchSpace, largest: Architecture, static: bool
    ) -> TranslationModel:
        from nas_core.models.translation.net import TranslationNet  # a command needs the networks of one family

        source, target = task.source_dictionary, task.target_dictionary
        if args.share_all_embeddings and source != target:
            raise ConfigError(
                f"--share-all-embeddings (given, or the default of --arch {getattr(args, 'arch', '')}) needs one"
                " dictionary, but those of source and target differ; run fairseq-preprocess with --joined-dictionary,"
                " or add --no-share-all-embeddings"
            )
        resolve_linear_lengths(args, space, task)
        config = TRANSLATION.network_config(args, source.pad(), static)
        widths = largest.number("encoder.embed_dim"), largest.number("decoder.embed_dim")
        return cls(args, TranslationNet(space, len(source), len(target), config, widths), source, target)

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor | None, prev_output_tokens: Tensor, **kwargs: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        output: tuple[Tensor, dict[str, Any]] = self.decoder(
            prev_output_tokens, self.encoder(src_tokens, src_lengths), **kwargs
        )
        return output

    def max_length(self, side: str) -> int:
        """Return the largest supported number of tokens; ``side`` is ``source`` or ``target``."""
        option = int(getattr(self.args, f"max_{side}_positions"))
        limit = length_limits(self.space, self.net.config)[("source", "target").index(side)]
        return option if limit is None else min(option, limit)

    def max_positions(self) -> tuple[int, int]:
        """Return the lengths in tokens of source and target above which fairseq skips sentences."""
        target = int(self.args.max_target_positions) if self._is_generation_fast else self.decoder.max_positions()
        return self.encoder.max_positions(), target


# -- lengths of sentences ----------------------------------------------------------------------------------------------


def resolve_linear_lengths(args: Namespace, space: SearchSpace, task: Any) -> None:
    """Set ``args.linear_max_length``, the length scale of linear attention in the decoder, if it is not given.

    The default is the longest target sentence of the data (or source sentence, if cross attention may be linear).
    """
    if args.linear_max_length is not None:
        return
    args.linear_max_length = max(args.max_source_positions, args.max_target_positions)
    reads_source = bounded(space, "cross")
    if not (reads_source or bounded(space, "decoder")):
        return
    splits = [str(getattr(args, "train_subset", "train")), *str(getattr(args, "valid_subset", "valid")).split(",")]
    lengths = sentence_lengths(task, splits, ["src"] * reads_source + ["tgt"])
    lengths = lengths[lengths <= args.linear_max_length]  # longer ones are not trained on
    if not len(lengths):
        raise ConfigError(
            "linear attention in the decoder needs a length scale, and there is no training data to compute it; give"
            " the longest sentence in tokens as --linear-max-length M"
        )
    max_length, median = int(lengths.max()), float(np.median(lengths))
    args.linear_max_length = min(args.linear_max_length, -(-max_length // _STEP) * _STEP)
    logger.info(
        "linear attention in the decoder has length scale and longest sentence %d tokens; training sentences have at"
        " most %d tokens, median %d", args.linear_max_length, max_length, median,
    )  # fmt: skip
    if args.linear_max_length > _FAR * median:
        logger.warning(
            "this length scale is far above most sentences, so linear attention hardly depends on positions; remove"
            " the longest sentences, or give a smaller --linear-max-length"
        )


def sentence_lengths(task: Any, splits: Sequence[str], sides: Sequence[str]) -> NDArray[np.int64]:
    """Return the lengths in tokens (with the end token) of all sentences in the existing splits.

    Args:
        sides: ``src``, ``tgt`` or both.
    """
    lengths = [np.empty(0, np.int64)]
    for folder, split in product(range(len(str(task.cfg.data).split(":"))), splits):
        with suppress(FileNotFoundError):
            task.load_dataset(split, epoch=folder + 1, combine=True)
            lengths += [np.asarray(getattr(task.dataset(split), f"{side}_sizes"), np.int64) for side in sides]
    return np.concatenate(lengths)
