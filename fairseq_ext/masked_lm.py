"""Masked language models for fairseq's tasks ``masked_lm`` and ``sentence_prediction``.

Shapes: B batch, T length, N masked tokens, C channels, V vocabulary, K classes.
"""

from __future__ import annotations

import logging
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.models import FairseqEncoder, FairseqEncoderModel
from torch import Tensor

from fairseq_ext.compat import one_line_errors
from fairseq_ext.families import MASKED_LM
from fairseq_ext.supernet_model import ModelPart, SupernetModel, register
from nas_core.models.masked_lm.net import Subnet, length_limit
from nas_core.space import Architecture, SearchSpace
from nas_core.space.bert import network_width

logger = logging.getLogger(__name__)

_HEADS = "net.classification_heads."


class Encoder(ModelPart, FairseqEncoder):  # type: ignore[misc]
    """Encoder with fairseq's interface, which runs the active architecture."""

    def forward(
        self,
        src_tokens: Tensor,
        features_only: bool = False,
        classification_head_name: str | None = None,
        masked_tokens: Tensor | None = None,
    ) -> Tensor:
        net, subnet = self.model.net, self.model.active_subnet()
        features = net.encode(subnet, src_tokens)
        if classification_head_name is not None:
            return net.classify(subnet, features, classification_head_name)
        if features_only:
            return features
        return net.predict(subnet, features if masked_tokens is None else features[masked_tokens])

    def max_positions(self) -> int:
        return self.model.max_length()


@register
class MaskedLMModel(SupernetModel[Subnet], FairseqEncoderModel):  # type: ignore[misc]
    """Supernet of masked language models, or a static network with ``--subnet``; replaces ``roberta``."""

    trained_by = (
        "mos_roberta*, hat_roberta*, mformer_roberta*, *_bert or *_bert_small, or a model of --arch roberta* converted"
        " by 'nas-ext elastic'"
    )
    family = MASKED_LM

    def __init__(self, args: Namespace, net: Any, dictionary: Any) -> None:
        super().__init__(Encoder(self, dictionary))
        self.hold(args, net)

    @classmethod
    def of_space(
        cls, args: Namespace, task: Any, space: SearchSpace, largest: Architecture, static: bool
    ) -> MaskedLMModel:
        from nas_core.models.masked_lm import MaskedLMNet  # a command needs the networks of one family

        if args.max_positions is None:
            args.max_positions = getattr(args, "tokens_per_sample", None) or task.max_positions()
        dictionary = task.source_dictionary
        config = MASKED_LM.network_config(args, dictionary.pad(), static)
        return cls(args, MaskedLMNet(space, len(dictionary), config, network_width(largest)), dictionary)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        features_only: bool = False,
        classification_head_name: str | None = None,
        masked_tokens: Tensor | None = None,
        **_: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return logits (B, T, V) for ``src_tokens`` (B, T), or (N, V) at the mask ``masked_tokens`` (B, T).

        With ``features_only``, return features (B, T, C); with a classification head, logits (B, K).
        """
        return self.encoder(src_tokens, features_only, classification_head_name, masked_tokens), {"inner_states": None}

    @property
    def classification_heads(self) -> Any:
        return self.net.classification_heads

    def register_classification_head(
        self, name: str, num_classes: int | None = None, inner_dim: int | None = None, **_: Any
    ) -> None:
        """Add a classification head, for fairseq's task ``sentence_prediction``."""
        with one_line_errors():
            self.net.set_classification_head(name, int(num_classes or 0), inner_dim)

    def get_normalized_probs(self, net_output: Any, log_probs: bool, sample: Any = None) -> Tensor:
        logits = net_output[0].float()
        return torch.log_softmax(logits, -1) if log_probs else torch.softmax(logits, -1)

    @property
    def supported_targets(self) -> set[str]:
        return {"self"}

    def max_length(self) -> int:
        """Return the largest supported number of tokens."""
        option, limit = int(self.args.max_positions), length_limit(self.space, self.net.config)
        return option if limit is None else min(option, limit)

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True, *args: Any, **kwargs: Any) -> Any:
        with one_line_errors():
            state_dict = fit_heads(self.net, state_dict, bool(self.args.load_checkpoint_heads))
        return super().load_state_dict(state_dict, strict, *args, **kwargs)


# -- classification heads ----------------------------------------------------------------------------------------------


def stored_heads(state: dict[str, Tensor], prefix: str = _HEADS) -> dict[str, tuple[int, int]]:
    """Return the classification heads of a state dict: name -> (number of classes, hidden units)."""
    names = dict.fromkeys(name.removeprefix(prefix).split(".")[0] for name in state if name.startswith(prefix))
    shapes = {name: state.get(f"{prefix}{name}.out_proj.weight") for name in names}
    return {name: (len(weight), weight.shape[1]) for name, weight in shapes.items() if weight is not None}


def fit_heads(net: Any, state: dict[str, Any], load_all: bool) -> dict[str, Any]:
    """Return a state dict with the classification heads that the network has.

    Args:
        load_all: add heads that the network lacks to the network, instead of removing them from the state dict.
    """
    state, heads = dict(state), dict(net.classification_heads.items())
    for name, (classes, inner) in stored_heads(state).items():
        head = heads.get(name)
        if head is None and load_all:
            net.set_classification_head(name, classes, inner)
        elif head is None or (head.classes, head.inner) != (classes, inner):
            reason = "the model has no such head" if head is None else "the model's head has another size"
            logger.warning("classification head %s of the checkpoint is not loaded: %s", name, reason)
            state = {key: value for key, value in state.items() if not key.startswith(f"{_HEADS}{name}.")}
    for name, tensor in net.classification_heads.state_dict().items():  # type: ignore[attr-defined]
        state.setdefault(_HEADS + name, tensor)
    return state


# -- batches -----------------------------------------------------------------------------------------------------------


def plain_batch(batch: dict[str, Any], padding: int, device: str | torch.device) -> dict[str, Any]:
    """Convert a batch of fairseq to tensors ``tokens`` (B, T) and ``target``, and the number ``count`` of targets.

    For ``masked_lm``, ``target`` is (N,), and ``at`` (N,) contains the indices of the masked tokens in B * T.
    """
    tokens, target = batch["net_input"]["src_tokens"], batch["target"]
    tensors = {"tokens": tokens}
    if target.shape == tokens.shape:
        tensors["at"] = target.flatten().ne(padding).nonzero().flatten()
        target = target.flatten()[tensors["at"]]
    elif not target.is_floating_point():
        target = target.flatten()
    tensors["target"] = target
    return {name: tensor.to(device) for name, tensor in tensors.items()} | {"count": target.shape[0]}


def batch_loss(net: Any, subnet: Subnet, batch: Mapping[str, Any], head: str | None) -> tuple[Tensor, Tensor]:
    """Return the summed loss of a batch in nats, and the number of correct predictions."""
    features = net.encode(subnet, batch["tokens"])
    if head is None:
        logits = net.predict(subnet, features.flatten(0, 1).index_select(0, batch["at"]))
    else:
        logits = net.classify(subnet, features, head)
    logits, target = logits.float(), batch["target"]
    if target.is_floating_point():
        return F.mse_loss(logits.flatten(), target.flatten(), reduction="sum"), target.new_zeros(())
    return F.cross_entropy(logits, target, reduction="sum"), (logits.argmax(-1) == target).float().sum()
