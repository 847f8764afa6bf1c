"""What every trained network of fairseq's is once it is opened to be taken over.

Shapes: B batch, T length, V vocabulary.
"""

from __future__ import annotations

import copy
import json
from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fairseq_ext.checkpoint import write_network
from fairseq_ext.criterion import label_smoothing
from fairseq_ext.data import options_of
from fairseq_ext.elastic.batches import calibration_batches
from fairseq_ext.families import Family
from nas_core.layers import MoSConfig
from nas_core.models.elastic import ElasticForm
from nas_core.random_streams import own_streams
from nas_core.space import SearchSpace, space_to_dict
from nas_core.supernet.teacher import weights_digest

_LENGTHS = (17, 11, 5)
"""Tokens of the sentences on which outputs are compared, where the network reads so many."""


class FairseqTrained(ABC):
    """A trained network with its weights in an elastic network; see
    :class:`nas_core.supernet.elastic.take_over.Trained`.

    A subclass names the networks and what is different about them. What is compared and the loss are here those of
    networks that predict a next token; one that predicts something else says how.

    Args:
        state: the content of its checkpoint.
        args: options of a supernet around it, see :func:`supernet_settings`.
        config: the network's settings that these options stand for.
        space: its largest network is the trained one.
        task: set up as for the network.
        model: fairseq's own.
        device: where it is computed.
    """

    form: ClassVar[ElasticForm]
    network: ClassVar[Callable[..., nn.Module]]
    """The class of elastic networks of a space, sizes of vocabularies and settings."""
    mapped: ClassVar[Callable[[Any, Any], dict[str, Tensor]]]
    """The function that gives the weights of fairseq's model under the names of the elastic network."""
    family: ClassVar[Family]
    """The family of its supernets."""
    reads: ClassVar[tuple[str, ...]] = ("src_tokens",)
    """What of a batch the network reads."""

    def __init__(
        self,
        state: dict[str, Any],
        args: Namespace,
        config: Any,
        space: SearchSpace,
        task: Any,
        model: Any,
        device: str,
    ) -> None:
        self._state, self._task, self._model, self._device = state, task, model.float().to(device).eval(), device
        self._args, self.space = args, space
        net = self._network(config)
        net.load_state_dict(self.mapped(model, net))
        self.net: Any = net.to(device).eval()

    def _network(self, config: Any) -> nn.Module:
        with own_streams(0):
            return self.network(self.space, *self._vocabularies(), config)

    def _vocabularies(self) -> tuple[int, ...]:
        return (len(self._task.source_dictionary),)

    def difference(self, net: nn.Module) -> float:
        """The largest difference between logits (B, T, V) of a padded batch where there is no padding, over the
        largest."""
        tokens = self._tokens()
        subnet = net.select(self.space.largest())  # type: ignore[operator]
        with torch.no_grad():
            expected = self._logits(*tokens)
            training = net.training
            found = net.eval()(subnet, *tokens)
            net.train(training)
        read = tokens[-1].ne(self._task.target_dictionary.pad())[..., None]
        return float(((found - expected) * read).abs().max() / (expected * read).abs().max())

    @abstractmethod
    def _tokens(self) -> tuple[Tensor, ...]:
        """Random tokens of all that the network reads, each (B, T), those that it predicts after last."""

    def _logits(self, *tokens: Tensor) -> Tensor:
        """What fairseq's own model gives (B, T, V)."""
        logits: Tensor = self._model(*tokens)[0]
        return logits

    def calibration(self, count: int) -> Sequence[Any]:
        """Batches of training data, or of validation data where there is no training data; see
        :func:`fairseq_ext.elastic.batches.calibration_batches`."""
        data = self._state["cfg"].get("dataset") or {}
        splits = tuple(str(data.get(f"{name}_subset") or name).split(",")[0] for name in ("train", "valid"))
        return calibration_batches(self._task, splits, self._longest(), count, self._device)

    def _longest(self) -> Any:
        return self._model.max_positions()

    def loss(self, net: Any, subnet: Any, batch: Any) -> Tensor:
        """Cross-entropy per target token, with the label smoothing that the network was trained with."""
        logits = net(subnet, *(batch["net_input"][name] for name in self.reads))
        words = logits.shape[-1]
        smoothing = label_smoothing(self._state) * words / (words - 1)  # fairseq spreads it over others
        padding = self._task.target_dictionary.pad()
        return F.cross_entropy(
            logits.flatten(0, 1), batch["target"].flatten(), ignore_index=padding, label_smoothing=min(smoothing, 1.0)
        )

    def with_experts(self, mos: str) -> nn.Module:
        """The same network with experts of that kind and random weights."""
        return self._network(replace(self.net.config, mos=MoSConfig(kind=mos))).to(self._device).eval()

    def save(self, path: Path, net: nn.Module) -> None:
        """Write what ``fairseq-train`` trains on with the task of such supernets, and every command opens."""
        config: Any = net.config
        args = copy.copy(self._args)
        args.arch = self.family.static if config.mos.kind == "none" else self.family.model
        args.mos, args.mos_experts = config.mos.kind, config.mos.experts
        args.mos_router_hidden, args.mos_router_layers = config.mos.router_hidden, config.mos.router_layers
        for name in self.family.orders:
            setattr(args, name, list(getattr(config, name)) or None)
        weights = {f"net.{name}": tensor for name, tensor in net.state_dict().items()}
        args.taken_over = weights_digest(weights)  # tells this order of channels from that of another take-over
        write_network(self._state, self._groups(args), weights, path)

    def _groups(self, args: Namespace) -> dict[str, Any]:
        """All groups of settings, as under ``cfg`` of the new checkpoint."""
        return {**copy.deepcopy(self._state["cfg"]), "model": args}


def supernet_settings(family: Family, task: Any, space: SearchSpace, /, **own: Any) -> Namespace:
    """Options of a supernet around a network, as this plug-in's models have them in their checkpoints.

    Args:
        family: of the supernet; its defaults fill in the rest.
        task: set up as for the network.
        own: options of its kind of network, and the ``task`` that trains the supernet where it is another than the
            family's.
    """
    args = Namespace(
        arch=family.static,
        data=options_of(task).data,
        mos="none",
        search_space=space.name,
        search_space_json=json.dumps(space_to_dict(space)),
        taken_over=True,
        **{"task": f"supernet_{family.task}", **own},
    )
    family.fill_in(args)
    return args


def random_tokens(words: Any, longest: int, stream: torch.Generator, left: bool = False) -> Tensor:
    """Sentences (B, T) of different lengths up to ``longest``, padded on the right, or on the left."""
    longest = min(_LENGTHS[0], longest)
    tokens = torch.randint(words.nspecial, len(words), (len(_LENGTHS), longest), generator=stream)
    for row, length in zip(tokens, _LENGTHS, strict=True):
        missing = max(0, longest - length)
        row[slice(missing) if left else slice(longest - missing, None)] = words.pad()
    return tokens
