"""Other kinds of attention beside the one that a network was trained with: genes for them, and copies to start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.layers.attention.kinds import KINDS
from nas_core.layers.attention.projections import ElasticCrossAttention, ElasticSelfAttention
from nas_core.space import Choice, SearchSpace


def attention_choices(space: SearchSpace) -> list[Choice]:
    """The genes by which layers choose among several kinds of attention."""
    known = set(KINDS.names())
    return [choice for choice in space.choices if any(len(row) > 1 and known.issuperset(row) for row in choice.options)]


def kinds_at(kinds: Sequence[str], places: Sequence[str]) -> list[tuple[str, ...]]:
    """For each of the places, the kinds that may stand there; see :data:`nas_core.layers.attention.PLACES`.

    Raises:
        ConfigError: one may stand in none, or softmax, which trained networks have, is not among them.
    """
    if "softmax" not in kinds:
        raise ConfigError(f"attention {', '.join(kinds)}: softmax must be among them, the trained network has it")
    found = [tuple(kind for kind in dict.fromkeys(kinds) if place in KINDS.get(kind).places) for place in places]
    for kind in kinds:
        if not any(kind in each for each in found):
            raise ConfigError(f"attention {kind!r} may not stand in {' or '.join(places)} attention; leave it out")
    return found


def with_kinds(trained: Mapping[str, Tensor], net: nn.Module) -> dict[str, Tensor]:
    """The state of a network whose layers choose their attention, from that of the same network with one kind.

    The trained kind gets its weights, so that the network that uses it everywhere is the trained one. Every other kind
    starts with the same projections (which is exact for none, but nearer than random ones: Kasai et al. 2021,
    "Finetuning Pretrained Transformers into RNNs"), and keeps what the trained kind does not have.

    Args:
        trained: the state of the network with one kind of attention in each layer; may hold more.
        net: the same network, over a space with one kind or several.

    Raises:
        ConfigError: something of the network is missing, or has another shape.
    """
    kinds = {
        f"{at}.{kind}.": f"{at}."
        for at, attention in net.named_modules()
        if isinstance(attention, nn.ModuleDict)
        for kind, each in attention.items()
        if isinstance(each, ElasticSelfAttention | ElasticCrossAttention)
    }
    state = {}
    for name, own in net.state_dict().items():
        prefix = next((prefix for prefix in kinds if name.startswith(prefix)), None)
        source = name if name in trained or prefix is None else kinds[prefix] + name.removeprefix(prefix)
        state[name] = trained.get(source, own)
        if (source not in trained and prefix is None) or state[name].shape != own.shape:
            raise ConfigError(f"the trained network has no {name} of shape {tuple(own.shape)}; give the same network")
    return state
