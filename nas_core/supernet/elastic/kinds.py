"""Other kinds of attention beside the one that a network was trained with: genes for them, and copies to start from."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.layers.attention.kinds import KINDS
from nas_core.layers.attention.projections import ElasticCrossAttention, ElasticSelfAttention
from nas_core.space import Choice, SearchSpace

__all__ = ["attention_choices", "attention_only", "copy_into_kinds"]


def attention_choices(space: SearchSpace) -> list[Choice]:
    """The genes by which layers choose among several kinds of attention."""
    known = set(KINDS.names())
    return [choice for choice in space.choices if any(len(row) > 1 and known.issuperset(row) for row in choice.options)]


def attention_only(space: SearchSpace) -> SearchSpace:
    """The space in which nothing but the kinds of attention is chosen, all else being as in the largest network.

    Raises:
        ConfigError: the space chooses no attention.
    """
    kinds = [choice.name for choice in attention_choices(space)]
    if not kinds:
        raise ConfigError(
            f"space {space.name!r} chooses no attention; name several kinds, e.g. --attention softmax,linear"
        )
    largest = space.largest()
    choices = []
    for choice in space.choices:
        if choice.name in kinds:
            choices.append(choice)
            continue
        gene = largest[choice.name]
        rows = tuple((value,) for value in gene) if isinstance(gene, tuple) else ((gene,),)
        choices.append(Choice(choice.name, rows, choice.per, choice.codes, choice.scale))
    return SearchSpace(f"{space.name}-attention", choices, space.fixed)


def copy_into_kinds(trained: Mapping[str, Tensor], net: nn.Module) -> None:
    """Give a network whose layers choose their attention the weights of the same network with one kind.

    The trained kind gets its weights, so that the network that uses it everywhere is the trained one. Every other kind
    starts with the same projections (which is exact for none, but nearer than random ones: Kasai et al. 2021,
    "Finetuning Pretrained Transformers into RNNs"), and with its own start in what the trained kind does not have.

    Args:
        trained: the state of the network with one kind of attention in each layer.
        net: the same network over a space with several.

    Raises:
        ConfigError: the two are not the same network but for the kinds.
    """
    kinds = [
        (f"{at}.", f"{at}.{kind}.")
        for at, attention in net.named_modules()
        if isinstance(attention, nn.ModuleDict)
        for kind, each in attention.items()
        if isinstance(each, ElasticSelfAttention | ElasticCrossAttention)
    ]
    target, used = net.state_dict(), set()
    with torch.no_grad():
        for name, tensor in target.items():
            source, own = name, False
            for at, kind in kinds:
                if name not in trained and name.startswith(kind):
                    source, own = at + name.removeprefix(kind), True
            if source in trained and trained[source].shape == tensor.shape:
                tensor.copy_(trained[source])
                used.add(source)
            elif source in trained or not own:
                raise ConfigError(f"the networks with one and with several kinds of attention differ in {name}")
    if left := next((name for name in trained if name not in used), None):
        raise ConfigError(f"the network with several kinds of attention has no place for {left}")
