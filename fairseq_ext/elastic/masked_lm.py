"""fairseq's ``--arch roberta*`` as the largest subnet of a supernet of masked language models.

Shapes: B batch, T length, C channels, V vocabulary, K classes.
"""

from __future__ import annotations

import copy
import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import Tensor, nn

from fairseq_ext.checkpoint import load_network, write_network
from fairseq_ext.elastic.batches import calibration_batches
from fairseq_ext.elastic.kinds import Request, settings_of
from fairseq_ext.elastic.masked_lm_settings import masked_lm_settings, task_settings
from fairseq_ext.elastic.spaces import space_around
from fairseq_ext.masked_lm.batches import plain_batch
from fairseq_ext.masked_lm.checkpoint import STATIC
from fairseq_ext.masked_lm.heads import stored_heads
from fairseq_ext.masked_lm.mapping import masked_lm_state
from fairseq_ext.masked_lm.options import network_config
from fairseq_ext.masked_lm.supernet import batch_loss
from nas_core.device import usable_device
from nas_core.layers import MoSConfig
from nas_core.models.masked_lm import ClassHead, MaskedLMNet
from nas_core.models.masked_lm.elastic import MASKED_LM_ELASTIC
from nas_core.random_streams import own_streams
from nas_core.space import SearchSpace, space_to_dict
from nas_core.supernet.elastic.stack_space import StackSizes, masked_lm_around, trained_genes
from nas_core.supernet.teacher import weights_digest

__all__ = ["TrainedMaskedLM", "open_masked_lm"]

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
_MIXED = "mos_roberta"
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
        lambda: masked_lm_around(f"around-{path.stem}", sizes, request.attention),
    )
    args.load_checkpoint_heads = True
    state = {**state, "cfg": {**state["cfg"], "model": args, "task": task_group}}
    task, model = load_network(path, state, request.data)
    return TrainedMaskedLM(state, args, space, task, model, device)


class TrainedMaskedLM:
    """A trained RoBERTa, with its weights in an elastic network; see
    :class:`nas_core.supernet.elastic.take_over.Trained`."""

    form = MASKED_LM_ELASTIC

    def __init__(
        self, state: dict[str, Any], trained: Namespace, space: SearchSpace, task: Any, model: Any, device: str
    ) -> None:
        self._state, self._task, self._model, self._device = state, task, model.float().to(device).eval(), device
        self.space = space
        self._head: str | None = getattr(task.cfg, "classification_head_name", None)
        self._args = _supernet_settings(trained, space, task, state["cfg"]["task"]["_name"])
        found = stored_heads(state["model"], _HEADS)
        heads = [ClassHead(name, classes, inner) for name, (classes, inner) in found.items()]
        config = network_config(self._args, task.source_dictionary.pad(), static=False)
        config = replace(config, classification_heads=tuple(heads))
        with own_streams(0):
            net = MaskedLMNet(space, len(task.source_dictionary), config)
        net.load_state_dict(masked_lm_state(model, net))
        self.net = net.to(device).eval()

    def difference(self, net: nn.Module) -> float:
        """The largest difference between logits (B, T, V) of a batch with padding, where there is none, and logits
        (B, K) of each classification head, each over its largest."""
        tokens = self._tokens()
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

    def _tokens(self) -> Tensor:
        """Random sentences (B, T) with padding on the right."""
        words, longest = self._task.source_dictionary, min(17, int(self._args.max_positions))
        stream = torch.Generator().manual_seed(0)
        tokens = torch.randint(words.nspecial, len(words), (3, longest), generator=stream)
        for row, length in zip(tokens, (17, 11, 5), strict=True):
            row[length:] = words.pad()
        return tokens.to(self._device)

    def calibration(self, count: int) -> Sequence[Any]:
        """Batches of training data, or of validation data where there is no training data; see
        :func:`fairseq_ext.elastic.batches.calibration_batches`."""
        data = self._state["cfg"].get("dataset") or {}
        splits = tuple(str(data.get(f"{name}_subset") or name).split(",")[0] for name in ("train", "valid"))
        longest = int(self._args.max_positions)
        batches = calibration_batches(self._task, splits, longest, count, self._device)
        return [plain_batch(batch, self._task.source_dictionary.pad(), self._device) for batch in batches]

    def loss(self, net: Any, subnet: Any, batch: Any) -> Tensor:
        """Cross-entropy per masked token, or per sentence of a classifier; squared error of a regression."""
        total, _ = batch_loss(net, subnet, batch, self._head)
        return total / max(batch["count"], 1)

    def with_experts(self, mos: str) -> MaskedLMNet:
        """The same network with experts of that kind and random weights."""
        config = replace(self.net.config, mos=MoSConfig(kind=mos))
        with own_streams(0):
            return MaskedLMNet(self.space, len(self._task.source_dictionary), config).to(self._device).eval()

    def save(self, path: Path, net: nn.Module) -> None:
        """Write what ``fairseq-train --task supernet_masked_lm`` (or ``sentence_prediction``) trains on, and every
        command opens."""
        config: Any = net.config
        args = copy.copy(self._args)
        args.arch = STATIC if config.mos.kind == "none" else _MIXED
        args.mos, args.mos_experts = config.mos.kind, config.mos.experts
        args.mos_router_hidden, args.mos_router_layers = config.mos.router_hidden, config.mos.router_layers
        args.layer_order = list(config.layer_order) or None
        settings = {**copy.deepcopy(self._state["cfg"]), "model": args}
        settings["task"]["_name"] = args.task
        weights = {f"net.{name}": tensor for name, tensor in net.state_dict().items()}
        args.taken_over = weights_digest(weights)  # tells this order of channels from that of another take-over
        write_network(self._state, settings, weights, path)


def _supernet_settings(trained: Namespace, space: SearchSpace, task: Any, name: str) -> Namespace:
    """Options of a supernet around the network, as this plug-in's models have them in their checkpoints."""
    scaled = not trained.no_scale_embedding
    args = Namespace(
        arch=STATIC,
        task=_TASKS.get(name, name),
        data=task.cfg.data,
        mos="none",
        search_space=space.name,
        search_space_json=json.dumps(space_to_dict(space)),
        taken_over=True,
        load_checkpoint_heads=True,
        embedding_scale=float(trained.encoder_embed_dim) ** 0.5 if scaled else 1.0,
        **{option: getattr(trained, option) for option in _KEPT},
    )
    ARCH_CONFIG_REGISTRY[STATIC](args)
    return args
