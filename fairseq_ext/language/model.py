"""fairseq models: the elastic language model as a decoder, and registered architectures."""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from typing import Any

from fairseq.models import (
    ARCH_MODEL_REGISTRY,
    FairseqIncrementalDecoder,
    FairseqLanguageModel,
    register_model,
    register_model_architecture,
)
from torch import Tensor
from torch.nn import functional

from fairseq_ext.compat import check_backend, check_precision, one_line_errors, train_in_tf32
from fairseq_ext.inherit import differing_options
from fairseq_ext.language.options import (
    INHERITED,
    add_arguments,
    architectures,
    base_architecture,
    network_config,
    resolve_language,
)
from fairseq_ext.options import resolve_subnet
from nas_core.errors import CheckpointError, ConfigError
from nas_core.models.language import LanguageNet, LanguageSubnet
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.active import SubnetHolder

logger = logging.getLogger(__name__)

_CACHE = "nas_ext_cache"
"""Where decoding keeps the weights it began with and what attention keeps of the positions so far."""


class Decoder(FairseqIncrementalDecoder):  # type: ignore[misc]
    """Runs the network: all positions in training and scoring, one position per call when decoding."""

    def __init__(self, model: LanguageModel, dictionary: Any) -> None:
        super().__init__(dictionary)
        self._owner = (model,)

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Any = None,
        incremental_state: dict[str, Any] | None = None,
        features_only: bool = False,
        **_: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        net = self._owner[0].net
        if incremental_state is None:
            subnet = self._owner[0].active_subnet()
            features = net.features(subnet, prev_output_tokens)
        else:
            if _CACHE not in incremental_state:
                subnet = self._owner[0].active_subnet()
                incremental_state[_CACHE] = (subnet, net.start(subnet))
            subnet, cache = incremental_state[_CACHE]
            if cache.length == 0 and prev_output_tokens.shape[1] > 1:
                features, cache = net.read(subnet, prev_output_tokens)
                incremental_state[_CACHE] = (subnet, cache)
            else:
                features = net.step_features(subnet, prev_output_tokens[:, -1], cache)
            features = features[:, None]
        if features_only:
            # torch's DDP looks for parameters behind what a forward gives, and finds none that is given itself
            return features, {"attn": [None], "output": subnet.output.view_as(subnet.output)}
        return functional.linear(features, subnet.output), {"attn": [None]}

    def extract_features(self, prev_output_tokens: Tensor, **options: Any) -> tuple[Tensor, dict[str, Any]]:
        """Features before the output projection (B, T, C)."""
        return self.forward(prev_output_tokens, features_only=True, **options)

    def reorder_incremental_state(self, incremental_state: dict[str, Any], new_order: Tensor) -> None:
        if _CACHE in incremental_state:
            incremental_state[_CACHE][1].reorder(new_order)

    def max_positions(self) -> int:
        return self._owner[0].net.context_length


@register_model("mos_transformer_lm")
class LanguageModel(SubnetHolder[LanguageSubnet], FairseqLanguageModel):  # type: ignore[misc]
    """A supernet of language models over a search space, or (with ``--subnet``) the static network of one architecture.
    It takes the place of fairseq's ``transformer_lm`` in its task ``language_modeling``.

    The architecture in use is :attr:`architecture`. While training, ``set_num_updates``, which fairseq calls before
    each forward, draws one at random from the seed and the update number, so all workers, all micro-batches of an
    update and a resumed run agree on it. In evaluation it is the largest unless ``eval_subnet`` names a file.
    """

    def __init__(self, args: Namespace, net: LanguageNet, dictionary: Any) -> None:
        super().__init__(Decoder(self, dictionary))
        self.args = args
        self.net = net
        self.start(net.space, int(getattr(args, "seed", 1)), args.architecture_draw)
        if getattr(args, "eval_subnet", None):
            self.eval_architecture = self.space.validate(Architecture.load(args.eval_subnet))

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        add_arguments(parser)

    @classmethod
    def build_model(cls, args: Namespace, task: Any) -> LanguageModel:
        with one_line_errors():
            if not hasattr(args, "search_space_json"):  # a new model; one trained in half precision decodes anywhere
                check_precision(args)
                check_backend(args)
                if getattr(args, "tf32", False):
                    train_in_tf32()
            _check_task(args, task)
            base_architecture(args)
            space = resolve_language(args)
            architecture = resolve_subnet(args, space)
            own_space = space if architecture is None else SearchSpace.of(architecture, like=space)
            words = task.source_dictionary
            config = network_config(args, words.pad(), static=architecture is not None)
            net = LanguageNet(own_space, len(words), config, space.largest().number("embed_dim"))
            model = cls(args, net, words)
        what = f"supernet over {space!r}" if architecture is None else f"static network {architecture.key}"
        logger.info("%s, experts: %s, sequences of up to %d tokens", what, config.mos.kind, net.context_length)
        return model

    # -- the architecture in use ---------------------------------------------------------------------------------------

    def select(self, architecture: Architecture) -> LanguageSubnet:
        return self.net.select(architecture)

    def set_num_updates(self, num_updates: int) -> None:
        super().set_num_updates(num_updates)
        self.train_architecture = self.draw(num_updates)

    # -- fairseq's interface -------------------------------------------------------------------------------------------

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **options: Any) -> Any:
        """Logits (B, T, V) after each of ``src_tokens`` (B, T)."""
        return self.decoder(src_tokens, **options)

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True, *args: Any, **kwargs: Any) -> Any:
        with one_line_errors():
            self._check_state(state_dict)
        return super().load_state_dict(state_dict, strict, *args, **kwargs)

    def _check_state(self, state: dict[str, Any]) -> None:
        own = self.state_dict()
        if not any(name.startswith("net.") for name in state):
            raise CheckpointError(
                "the checkpoint holds another kind of model; expected one of --arch mos_transformer_lm*,"
                " hat_transformer_lm* or mformer_lm*, or one of --arch transformer_lm* that 'nas-ext elastic' has taken"
                " over"
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
            other = differing_options(self.args, INHERITED)
            raise CheckpointError(
                f"the checkpoint does not fit --search-space/--subnet/--mos: {what}; use the settings it was trained"
                f" with{f' ({other})' if other else ''}, or take a subnet out of a supernet with 'nas-ext extract'"
            )


def _check_task(args: Namespace, task: Any) -> None:
    """Whether the task asks what these networks give.

    Raises:
        ConfigError: it does not.
    """
    if getattr(args, "criterion", None) == "adaptive_loss":
        raise ConfigError(
            "--criterion adaptive_loss needs an adaptive softmax, which these networks do not have; take cross_entropy"
            " or fused_label_smoothed_cross_entropy"
        )
    if other := [target for target in getattr(task, "targets", ()) if target != "future"]:
        raise ConfigError(f"--{other[0]}-target: these networks predict the next token alone; drop the option")
    source, target = len(task.source_dictionary), len(task.target_dictionary)
    if source != target:
        raise ConfigError(
            f"--output-dictionary-size {target}: input and output of these networks have one vocabulary of {source};"
            " drop the option"
        )


for _name, _fill in architectures():
    if _name not in ARCH_MODEL_REGISTRY:
        register_model_architecture("mos_transformer_lm", _name)(_fill)
