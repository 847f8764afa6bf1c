"""fairseq's ``--arch roberta*`` as the largest subnet of a supernet of masked language models.

Shapes: B batch, T length, C channels, V vocabulary, K classes.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_ext.checkpoint import load_network
from fairseq_ext.elastic.kinds import Request, settings_of
from fairseq_ext.elastic.mapping import masked_lm_state
from fairseq_ext.elastic.masked_lm_settings import masked_lm_settings, task_settings
from fairseq_ext.elastic.spaces import name_around, space_around
from fairseq_ext.elastic.trained import FairseqTrained, random_tokens, supernet_settings
from fairseq_ext.families import MASKED_LM
from fairseq_ext.masked_lm import batch_loss, plain_batch, stored_heads
from nas_core.device import usable_device
from nas_core.models.masked_lm import ClassHead, MaskedLMNet
from nas_core.models.masked_lm.elastic import MASKED_LM_ELASTIC
from nas_core.space import SearchSpace
from nas_core.supernet.elastic.stack_space import StackSizes, masked_lm_around, trained_genes

_KEPT = (
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "pooler_dropout",
    "activation_fn",
    "pooler_activation_fn",
    "encoder_normalize_before",
    "layernorm_embedding",
    "untie_weights_roberta",
    "max_positions",
)
_TASKS = {"masked_lm": "supernet_masked_lm"}
"""The task of the supernet, where it is another than that of the network."""
_HEADS = "classification_heads."


def open_masked_lm(path: Path, state: dict[str, Any], request: Request) -> TrainedMaskedLM:
    """Open a checkpoint of fairseq's ``roberta``.

    Raises:
        ConfigError: a part of it has no elastic form. SpaceError: the space does not contain it. CheckpointError,
        DataError: see :func:`fairseq_ext.checkpoint.load_network`.
    """
    device = str(usable_device(request.device))
    task_group = task_settings(state["cfg"], path)
    args = masked_lm_settings(settings_of(state, path), task_group, path)
    sizes = StackSizes(
        int(args.encoder_layers),
        int(args.encoder_embed_dim),
        int(args.encoder_ffn_embed_dim),
        int(args.encoder_attention_heads),
        int(args.max_positions),
    )
    space = space_around(
        request.space,
        trained_genes(sizes),
        lambda: masked_lm_around(name_around(path), sizes, request.attention),
    )
    args.load_checkpoint_heads = True
    state = {**state, "cfg": {**state["cfg"], "model": args, "task": task_group}}
    task, model = load_network(path, state, request.data)
    own = _supernet_settings(args, space, task, task_group["_name"])
    heads = [ClassHead(name, *sizes) for name, sizes in stored_heads(state["model"], _HEADS).items()]
    config = MASKED_LM.network_config(own, task.source_dictionary.pad(), static=False)
    config = replace(config, classification_heads=tuple(heads))
    return TrainedMaskedLM(state, own, config, space, task, model, device)


class TrainedMaskedLM(FairseqTrained):
    """A trained RoBERTa, with its weights in an elastic network."""

    form = MASKED_LM_ELASTIC
    network = MaskedLMNet
    mapped = staticmethod(masked_lm_state)
    family = MASKED_LM

    def difference(self, net: nn.Module) -> float:
        """The largest difference between logits (B, T, V) of a batch with padding, where there is none, and logits
        (B, K) of each classification head, each over its largest."""
        (tokens,) = self._tokens()
        read = tokens.ne(self._task.source_dictionary.pad())
        elastic: Any = net
        training = net.training
        net.eval()
        with torch.no_grad():
            subnet = elastic.select(self.space.largest())
            features, _ = self._model(tokens, features_only=True)
            own = elastic.encode(subnet, tokens)
            pairs = [(elastic.predict(subnet, own)[read], self._model(tokens)[0][read])]
            for name, head in self._model.classification_heads.items():
                pairs.append((elastic.classify(subnet, own, name), head(features)))
        net.train(training)
        return max(float((found - wanted).abs().max() / wanted.abs().max()) for found, wanted in pairs)

    def _tokens(self) -> tuple[Tensor, ...]:
        """Random sentences (B, T) with padding on the right."""
        stream = torch.Generator().manual_seed(0)
        return (random_tokens(self._task.source_dictionary, self._longest(), stream).to(self._device),)

    def calibration(self, count: int) -> Sequence[Any]:
        padding = self._task.source_dictionary.pad()
        return [plain_batch(batch, padding, self._device) for batch in super().calibration(count)]

    def _longest(self) -> int:
        return int(self._args.max_positions)

    def loss(self, net: Any, subnet: Any, batch: Any) -> Tensor:
        """Cross-entropy per masked token, or per sentence of a classifier; squared error of a regression."""
        head = getattr(self._task.cfg, "classification_head_name", None)
        total, _ = batch_loss(net, subnet, batch, head)
        return total / max(batch["count"], 1)

    def _groups(self, args: Namespace) -> dict[str, Any]:
        groups = super()._groups(args)
        groups["task"]["_name"] = args.task
        return groups


def _supernet_settings(trained: Namespace, space: SearchSpace, task: Any, name: str) -> Namespace:
    """Options of a supernet around the network, as this plug-in's models have them in their checkpoints."""
    scaled = not trained.no_scale_embedding
    return supernet_settings(
        MASKED_LM,
        task,
        space,
        task=_TASKS.get(name, name),
        load_checkpoint_heads=True,
        embedding_scale=float(trained.encoder_embed_dim) ** 0.5 if scaled else 1.0,
        **{option: getattr(trained, option) for option in _KEPT},
    )
