"""fairseq models: the elastic translation network as encoder, decoder and registered architectures."""

from __future__ import annotations

import logging
from argparse import Namespace
from typing import Any

import torch
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from torch import Tensor

from fairseq_ext.compat import check_sharing
from fairseq_ext.families import TRANSLATION
from fairseq_ext.lengths import resolve_linear_lengths
from fairseq_ext.supernet_model import SupernetModel, register
from nas_core.models.translation.net import Memory, Subnet, TranslationNet, length_limits
from nas_core.space import Architecture, SearchSpace

logger = logging.getLogger(__name__)

_CACHE = "nas_ext_cache"
"""Where decoding keeps what attention has of the positions so far."""


class Encoder(FairseqEncoder):  # type: ignore[misc]
    """Runs the network's encoder with the weights of the active architecture; hands both to the decoder."""

    def __init__(self, model: TranslationModel, dictionary: Any) -> None:
        super().__init__(dictionary)
        self._owner = (model,)

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **_: Any) -> dict[str, list[Any]]:
        model = self._owner[0]
        subnet = model.active_subnet()
        return {"subnet": [subnet], "memory": [model.net.encode(subnet, src_tokens)], "order": [None]}

    def reorder_encoder_out(self, encoder_out: dict[str, list[Any]], new_order: Tensor) -> dict[str, list[Any]]:
        """Only the row numbers are reordered: while decoding step by step the decoder reads its own cached keys and
        values, and the memory itself is not needed again."""
        order = encoder_out["order"][0]
        return {**encoder_out, "order": [new_order if order is None else order.index_select(0, new_order)]}

    def max_positions(self) -> int:
        return self._owner[0].longest("source")


class Decoder(FairseqIncrementalDecoder):  # type: ignore[misc]
    """Runs the network's decoder: all positions in training, one position per call when decoding."""

    def __init__(self, model: TranslationModel, dictionary: Any) -> None:
        super().__init__(dictionary)
        self._owner = (model,)

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Any]],
        incremental_state: dict[str, Any] | None = None,
        features_only: bool = False,
        **_: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        net = self._owner[0].net
        subnet: Subnet = encoder_out["subnet"][0]
        if incremental_state is None:
            features = net.decode_features(subnet, prev_output_tokens, _memory(encoder_out))
        else:
            if _CACHE not in incremental_state:
                cache = net.start(subnet, encoder_out["memory"][0], encoder_out["order"][0])
                incremental_state[_CACHE] = cache
            cache = incremental_state[_CACHE]
            if cache.length + 1 == self.max_positions():
                logger.warning(
                    "a translation is as long as this model can decode, %d tokens, and ends there", cache.length + 1
                )
            features = net.step_features(subnet, prev_output_tokens[:, -1], cache)[:, None]
        if features_only:
            # torch's DDP looks for parameters behind what a forward gives, and finds none that is given itself
            return features, {"attn": [None], "output": subnet.output.view_as(subnet.output)}
        return torch.nn.functional.linear(features, subnet.output), {"attn": [None]}

    def reorder_incremental_state(self, incremental_state: dict[str, Any], new_order: Tensor) -> None:
        if _CACHE in incremental_state:
            incremental_state[_CACHE].reorder(new_order)

    def max_positions(self) -> int:
        return self._owner[0].longest("target")


def _memory(encoder_out: dict[str, list[Any]]) -> Memory:
    memory: Memory = encoder_out["memory"][0]
    order = encoder_out["order"][0]
    return memory if order is None else memory.reorder(order)


@register
class TranslationModel(SupernetModel[Subnet], FairseqEncoderDecoderModel):  # type: ignore[misc]
    """A supernet of translation over a search space, or (with ``--subnet``) the static network of one architecture; see
    :class:`fairseq_ext.supernet_model.SupernetModel`."""

    trained_by = "mos_transformer*, hat_transformer*, mformer_wmt14*, mformer_translation* or cosformer*"
    family = TRANSLATION

    def __init__(self, args: Namespace, net: TranslationNet, source_dictionary: Any, target_dictionary: Any) -> None:
        super().__init__(Encoder(self, source_dictionary), Decoder(self, target_dictionary))
        self.hold(args, net)

    @classmethod
    def check_new(cls, args: Namespace, task: Any) -> None:
        check_sharing(args, task.source_dictionary, task.target_dictionary)

    @classmethod
    def of_space(
        cls, args: Namespace, task: Any, space: SearchSpace, largest: Architecture, static: bool
    ) -> TranslationModel:
        resolve_linear_lengths(args, space, task)
        source, target = task.source_dictionary, task.target_dictionary
        config = TRANSLATION.network_config(args, source.pad(), static)
        widths = largest.number("encoder.embed_dim"), largest.number("decoder.embed_dim")
        return cls(args, TranslationNet(space, len(source), len(target), config, widths), source, target)

    # -- fairseq's interface -------------------------------------------------------------------------------------------

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor | None, prev_output_tokens: Tensor, **kwargs: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        encoder_out = self.encoder(src_tokens, src_lengths)
        decoded: tuple[Tensor, dict[str, Any]] = self.decoder(prev_output_tokens, encoder_out, **kwargs)
        return decoded

    def longest(self, side: str) -> int:
        """Tokens that sentences of ``source`` or ``target`` may have: what was asked for, or what attention that is
        made for a longest sentence, if there is any, can read."""
        asked = int(getattr(self.args, f"max_{side}_positions"))
        limit = length_limits(self.space, self.net.config)[("source", "target").index(side)]
        return asked if limit is None else min(asked, limit)

    def max_positions(self) -> tuple[int, int]:
        """What fairseq leaves sentences out by: of references that are not read, only what was asked for."""
        target = int(self.args.max_target_positions) if self._is_generation_fast else self.decoder.max_positions()
        return self.encoder.max_positions(), target
