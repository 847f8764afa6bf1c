"""The fairseq model: the elastic masked language model as an encoder, and registered architectures."""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from typing import Any

import torch
from fairseq.models import (
    ARCH_MODEL_REGISTRY,
    FairseqEncoder,
    FairseqEncoderModel,
    register_model,
    register_model_architecture,
)
from torch import Tensor

from fairseq_ext.compat import check_backend, check_precision, one_line_errors, train_in_tf32
from fairseq_ext.inherit import differing_options
from fairseq_ext.masked_lm.heads import fit_heads
from fairseq_ext.masked_lm.options import INHERITED, add_arguments, architectures, base_architecture, network_config
from fairseq_ext.options import resolve_space, resolve_subnet
from nas_core.errors import CheckpointError
from nas_core.models.masked_lm import MaskedLMNet, Subnet
from nas_core.models.masked_lm.genes import length_limit
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.active import SubnetHolder

logger = logging.getLogger(__name__)


class Encoder(FairseqEncoder):  # type: ignore[misc]
    """Runs the network with the weights of the active architecture."""

    def __init__(self, model: MaskedLMModel, dictionary: Any) -> None:
        super().__init__(dictionary)
        self._owner = (model,)

    def forward(
        self,
        src_tokens: Tensor,
        features_only: bool = False,
        classification_head_name: str | None = None,
        masked_tokens: Tensor | None = None,
    ) -> Tensor:
        model = self._owner[0]
        net, subnet = model.net, model.active_subnet()
        features = net.encode(subnet, src_tokens)
        if classification_head_name is not None:
            return net.classify(subnet, features, classification_head_name)
        if features_only:
            return features
        return net.predict(subnet, features if masked_tokens is None else features[masked_tokens])

    def max_positions(self) -> int:
        return self._owner[0].longest()


@register_model("mos_roberta")
class MaskedLMModel(SubnetHolder[Subnet], FairseqEncoderModel):  # type: ignore[misc]
    """A supernet of masked language models over a search space, or (with ``--subnet``) the static network of one
    architecture. It takes the place of fairseq's ``roberta`` in its tasks ``masked_lm`` and ``sentence_prediction``.

    The architecture in use is :attr:`architecture`. While training, ``set_num_updates``, which fairseq calls before
    each forward, draws one at random from the seed and the update number, so all workers, all micro-batches of an
    update and a resumed run agree on it. In evaluation it is the largest.
    """

    def __init__(self, args: Namespace, net: MaskedLMNet, dictionary: Any) -> None:
        super().__init__(Encoder(self, dictionary))
        self.args = args
        self.net = net
        self.start(net.space, int(getattr(args, "seed", 1)), args.architecture_draw)

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        add_arguments(parser)

    @classmethod
    def build_model(cls, args: Namespace, task: Any) -> MaskedLMModel:
        with one_line_errors():
            if not hasattr(args, "search_space_json"):  # a new model; one trained in half precision decodes anywhere
                check_precision(args)
                check_backend(args)
                if getattr(args, "tf32", False):
                    train_in_tf32()
            base_architecture(args)
            if getattr(args, "max_positions", None) is None:
                args.max_positions = getattr(args, "tokens_per_sample", None) or task.max_positions()
            space = resolve_space(args)
            architecture = resolve_subnet(args, space)
            own_space = space if architecture is None else SearchSpace.of(architecture, like=space)
            words = task.source_dictionary
            config = network_config(args, words.pad(), static=architecture is not None)
            net = MaskedLMNet(own_space, len(words), config, space.largest().number("embed_dim"))
            model = cls(args, net, words)
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
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        features_only: bool = False,
        classification_head_name: str | None = None,
        masked_tokens: Tensor | None = None,
        **_: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Logits (B, T, V) of ``src_tokens`` (B, T), or (N, V) where ``masked_tokens`` (B, T) is True; features (B, T,
        C); or logits (B, K) of a classification head."""
        return self.encoder(src_tokens, features_only, classification_head_name, masked_tokens), {"inner_states": None}

    @property
    def classification_heads(self) -> Any:
        """The classifiers of sequences by name."""
        return self.net.classification_heads

    def register_classification_head(
        self, name: str, num_classes: int | None = None, inner_dim: int | None = None, **_: Any
    ) -> None:
        """Add a classifier of sequences; fairseq's task ``sentence_prediction`` calls it."""
        with one_line_errors():
            self.net.set_classification_head(name, int(num_classes or 0), inner_dim)

    def get_normalized_probs(self, net_output: Any, log_probs: bool, sample: Any = None) -> Tensor:
        logits = net_output[0].float()
        return torch.log_softmax(logits, -1) if log_probs else torch.softmax(logits, -1)

    @property
    def supported_targets(self) -> set[str]:
        return {"self"}

    def longest(self) -> int:
        """Tokens that sequences may have: what was asked for, or what attention that is made for a longest sequence,
        if there is any, can read."""
        asked, limit = int(self.args.max_positions), length_limit(self.space, self.net.config)
        return asked if limit is None else min(asked, limit)

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True, *args: Any, **kwargs: Any) -> Any:
        with one_line_errors():
            state_dict = fit_heads(self.net, state_dict, bool(self.args.load_checkpoint_heads))
            self._check_state(state_dict)
        return super().load_state_dict(state_dict, strict, *args, **kwargs)

    def _check_state(self, state: dict[str, Any]) -> None:
        own = self.state_dict()
        if not any(name.startswith("net.") for name in state):
            raise CheckpointError(
                "the checkpoint holds another kind of model; expected one of --arch mos_roberta*, hat_roberta* or"
                " mformer_roberta*, or one of --arch roberta* that 'nas-ext elastic' has taken over"
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


for _name, _fill in architectures():
    if _name not in ARCH_MODEL_REGISTRY:
        register_model_architecture("mos_roberta", _name)(_fill)
