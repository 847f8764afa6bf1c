"""The fairseq model: the elastic masked language model as an encoder, and registered architectures."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import torch
from fairseq.models import FairseqEncoder, FairseqEncoderModel
from torch import Tensor

from fairseq_ext.compat import one_line_errors
from fairseq_ext.families import MASKED_LM
from fairseq_ext.masked_lm.heads import fit_heads
from fairseq_ext.supernet_model import SupernetModel, register
from nas_core.models.masked_lm import MaskedLMNet, Subnet
from nas_core.models.masked_lm.genes import length_limit
from nas_core.space import Architecture, SearchSpace
from nas_core.space.bert import network_width


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


@register
class MaskedLMModel(SupernetModel[Subnet], FairseqEncoderModel):  # type: ignore[misc]
    """A supernet of masked language models over a search space, or (with ``--subnet``) the static network of one
    architecture. It takes the place of fairseq's ``roberta`` in its tasks ``masked_lm`` and ``sentence_prediction``;
    see :class:`fairseq_ext.supernet_model.SupernetModel`.
    """

    trained_by = (
        "mos_roberta*, hat_roberta*, mformer_roberta*, *_bert or *_bert_small, or one of --arch roberta* that 'nas-ext"
        " elastic' has taken over"
    )
    family = MASKED_LM

    def __init__(self, args: Namespace, net: MaskedLMNet, dictionary: Any) -> None:
        super().__init__(Encoder(self, dictionary))
        self.hold(args, net)

    @classmethod
    def fill_in(cls, args: Namespace, task: Any) -> None:
        super().fill_in(args, task)
        if getattr(args, "max_positions", None) is None:
            args.max_positions = getattr(args, "tokens_per_sample", None) or task.max_positions()

    @classmethod
    def of_space(
        cls, args: Namespace, task: Any, space: SearchSpace, largest: Architecture, static: bool
    ) -> MaskedLMModel:
        words = task.source_dictionary
        config = MASKED_LM.network_config(args, words.pad(), static)
        return cls(args, MaskedLMNet(space, len(words), config, network_width(largest)), words)

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
        return super().load_state_dict(state_dict, strict, *args, **kwargs)
