"""Language models for fairseq's task ``language_modeling``."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from fairseq.models import FairseqIncrementalDecoder, FairseqLanguageModel
from torch import Tensor

from fairseq_ext.families import LANGUAGE
from fairseq_ext.model import output_of
from fairseq_ext.supernet_model import ModelPart, SupernetModel, register
from nas_core.errors import ConfigError
from nas_core.models.language.net import LanguageSubnet, check_language_space
from nas_core.space import Architecture, SearchSpace
from nas_core.space.files import space_to_dict
from nas_core.space.language import with_context

_CACHE = "nas_ext_cache"
"""Key of the subnet and its attention cache in fairseq's incremental state."""


class Decoder(ModelPart, FairseqIncrementalDecoder):  # type: ignore[misc]
    """Decoder with fairseq's interface."""

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Any = None,
        incremental_state: dict[str, Any] | None = None,
        features_only: bool = False,
        **_: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        net = self.model.net
        if incremental_state is None:
            subnet = self.model.active_subnet()
            features = net.features(subnet, prev_output_tokens)
        else:
            if _CACHE not in incremental_state:
                subnet = self.model.active_subnet()
                incremental_state[_CACHE] = (subnet, net.start(subnet))
            subnet, cache = incremental_state[_CACHE]
            if cache.length == 0 and prev_output_tokens.shape[1] > 1:
                features, cache = net.read(subnet, prev_output_tokens)
                incremental_state[_CACHE] = (subnet, cache)
            else:
                features = net.step_features(subnet, prev_output_tokens[:, -1], cache)
            features = features[:, None]
        return output_of(features, subnet, features_only)

    def extract_features(self, prev_output_tokens: Tensor, **options: Any) -> tuple[Tensor, dict[str, Any]]:
        """Return features (B, T, C) before the output projection."""
        return self.forward(prev_output_tokens, features_only=True, **options)

    def reorder_incremental_state(self, incremental_state: dict[str, Any], new_order: Tensor) -> None:
        if _CACHE in incremental_state:
            incremental_state[_CACHE][1].reorder(new_order)

    def max_positions(self) -> int:
        return self.model.net.context_length


@register
class LanguageModel(SupernetModel[LanguageSubnet], FairseqLanguageModel):  # type: ignore[misc]
    """Supernet of language models, or a static network with ``--subnet``; replaces ``transformer_lm``."""

    trained_by = (
        "mos_transformer_lm*, hat_transformer_lm* or mformer_language*, or a model of --arch transformer_lm* converted"
        " by 'nas-ext elastic'"
    )
    family = LANGUAGE

    def __init__(self, args: Namespace, net: Any, dictionary: Any) -> None:
        super().__init__(Decoder(self, dictionary))
        self.hold(args, net)

    @classmethod
    def resolve_space(cls, args: Namespace) -> SearchSpace:
        """Return the search space, with ``--context-length`` if given, and store it in ``args`` as JSON."""
        stored = hasattr(args, "search_space_json")
        space = super().resolve_space(args)
        check_language_space(space)
        if stored:
            return space
        if args.context_length is not None:
            space = with_context(space, args.context_length)
            args.search_space_json = json.dumps(space_to_dict(space))
        context, tokens = space.largest().number("context_length"), getattr(args, "tokens_per_sample", None)
        if tokens and int(tokens) > context:
            raise ConfigError(
                f"--tokens-per-sample {tokens} is more than context_length {context} of space {space.name}; give"
                f" --context-length {tokens}, or a smaller --tokens-per-sample"
            )
        return space

    @classmethod
    def of_space(
        cls, args: Namespace, task: Any, space: SearchSpace, largest: Architecture, static: bool
    ) -> LanguageModel:
        from nas_core.models.language import LanguageNet  # a command needs the networks of one family

        _check_task(args, task)
        dictionary = task.source_dictionary
        config = LANGUAGE.network_config(args, dictionary.pad(), static)
        return cls(args, LanguageNet(space, len(dictionary), config, largest.number("embed_dim")), dictionary)

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **options: Any) -> Any:
        """Return next-token logits (B, T, V) for ``src_tokens`` (B, T)."""
        return self.decoder(src_tokens, **options)


def _check_task(args: Namespace, task: Any) -> None:
    if getattr(args, "criterion", None) == "adaptive_loss":
        raise ConfigError(
            "--criterion adaptive_loss needs an adaptive softmax, which this model does not have; give --criterion"
            " cross_entropy or fused_label_smoothed_cross_entropy"
        )
    if unsupported := [target for target in getattr(task, "targets", ()) if target != "future"]:
        raise ConfigError(
            f"--{unsupported[0]}-target is not supported, since this model predicts only the next token; leave it out"
        )
    source, target = len(task.source_dictionary), len(task.target_dictionary)
    if source != target:
        raise ConfigError(
            f"--output-dictionary-size {target} is not supported, since input and output have the same dictionary of"
            f" {source} symbols; leave it out"
        )
