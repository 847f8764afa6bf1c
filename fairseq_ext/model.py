"""fairseq models: the elastic translation network as encoder, decoder and registered architectures."""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from typing import Any

import torch
from fairseq.models import (
    FairseqEncoder,
    FairseqEncoderDecoderModel,
    FairseqIncrementalDecoder,
    register_model,
    register_model_architecture,
)
from torch import Tensor

from fairseq_ext.architectures import architectures, base_architecture
from fairseq_ext.compat import check_backend, check_precision, check_sharing, one_line_errors, train_in_tf32
from fairseq_ext.inherit import differing_options
from fairseq_ext.lengths import resolve_linear_lengths
from fairseq_ext.options import add_model_arguments, model_config, resolve_space, resolve_subnet
from nas_core.errors import CheckpointError
from nas_core.models.translation.attention import length_limits
from nas_core.models.translation.net import TranslationNet
from nas_core.models.translation.subnet import Memory, Subnet
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.active import SubnetHolder

logger = logging.getLogger(__name__)


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
            if "nas_ext_cache" not in incremental_state:
                cache = net.start(subnet, encoder_out["memory"][0], encoder_out["order"][0])
                incremental_state["nas_ext_cache"] = cache
            cache = incremental_state["nas_ext_cache"]
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
        if "nas_ext_cache" in incremental_state:
            incremental_state["nas_ext_cache"].reorder(new_order)

    def max_positions(self) -> int:
        return self._owner[0].longest("target")


def _memory(encoder_out: dict[str, list[Any]]) -> Memory:
    memory: Memory = encoder_out["memory"][0]
    order = encoder_out["order"][0]
    return memory if order is None else memory.reorder(order)


@register_model("mos_transformer")
class TranslationModel(SubnetHolder[Subnet], FairseqEncoderDecoderModel):  # type: ignore[misc]
    """A supernet over a search space, or (with ``--subnet``) the static network of one architecture.

    The architecture in use is :attr:`architecture`. While training, ``set_num_updates``, which fairseq calls before
    each forward, draws one at random from the seed and the update number, so all workers, all micro-batches of an
    update and a resumed run agree on it. In evaluation it is the largest unless ``eval_subnet`` names a file.
    """

    def __init__(self, args: Namespace, net: TranslationNet, source_dictionary: Any, target_dictionary: Any) -> None:
        super().__init__(Encoder(self, source_dictionary), Decoder(self, target_dictionary))
        self.args = args
        self.net = net
        self.start(net.space, int(getattr(args, "seed", 1)), args.architecture_draw)
        if getattr(args, "eval_subnet", None):
            self.eval_architecture = self.space.validate(Architecture.load(args.eval_subnet))

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        add_model_arguments(parser)

    @classmethod
    def build_model(cls, args: Namespace, task: Any) -> TranslationModel:
        with one_line_errors():
            if not hasattr(args, "search_space_json"):  # a new model; one trained in half precision decodes anywhere
                check_precision(args)
                check_backend(args)
                check_sharing(args, task.source_dictionary, task.target_dictionary)
                if getattr(args, "tf32", False):
                    train_in_tf32()
            base_architecture(args)
            space = resolve_space(args)
            architecture = resolve_subnet(args, space)
            own_space = space if architecture is None else SearchSpace.of(architecture, like=space)
            resolve_linear_lengths(args, own_space, task)
            source, target = task.source_dictionary, task.target_dictionary
            config = model_config(args, source.pad(), static=architecture is not None)
            widest = space.largest()
            net = TranslationNet(
                own_space,
                len(source),
                len(target),
                config,
                (widest.number("encoder.embed_dim"), widest.number("decoder.embed_dim")),
            )
            model = cls(args, net, source, target)
        what = f"supernet over {space!r}" if architecture is None else f"static network {architecture.key}"
        logger.info("%s, experts: %s", what, config.mos.kind)
        return model

    # -- the architecture in use ---------------------------------------------------------------------------------------

    def select(self, architecture: Architecture) -> Subnet:
        return self.net.select(architecture)

    def set_num_updates(self, num_updates: int) -> None:
        super().set_num_updates(num_updates)
        self.train_architecture = self.draw(num_updates)

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

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True, *args: Any, **kwargs: Any) -> Any:
        with one_line_errors():
            self._check_state(state_dict)
        return super().load_state_dict(state_dict, strict, *args, **kwargs)

    def _check_state(self, state: dict[str, Any]) -> None:
        own = self.state_dict()
        if not any(name.startswith("net.") for name in state):
            raise CheckpointError(
                "the checkpoint holds another kind of model; expected one of --arch mos_transformer*, hat_transformer*,"
                " mformer* or cosformer*"
            )
        wrong = next((n for n in own if n in state and own[n].shape != state[n].shape), None)
        missing = next((n for n in own if n not in state), None)
        extra = next((n for n in state if n not in own), None)
        if wrong or missing or extra:
            what = (
                f"{wrong} has shape {tuple(state[wrong].shape)}, expected {tuple(own[wrong].shape)}"
                if wrong
                else f"{missing} is missing"
                if missing
                else f"{extra} is not part of this model"
            )
            other = differing_options(self.args)
            raise CheckpointError(
                f"the checkpoint does not fit --search-space/--subnet/--mos: {what}; use the settings it was trained"
                f" with{f' ({other})' if other else ''}, or take a subnet out of a supernet with 'nas-ext extract'"
            )


def _register_architectures() -> None:
    from fairseq.models import ARCH_MODEL_REGISTRY

    for name, fill in architectures():
        if name not in ARCH_MODEL_REGISTRY:
            register_model_architecture("mos_transformer", name)(fill)


_register_architectures()
