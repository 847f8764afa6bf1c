"""Additional attention types for a trained network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.layers.attention.kinds import ATTENTION_KINDS
from nas_core.layers.attention.projections import ElasticCrossAttention, ElasticSelfAttention
from nas_core.space import Choice, SearchSpace


def attention_choices(space: SearchSpace) -> list[Choice]:
    """Return the choices that have several attention types."""
    kinds = set(ATTENTION_KINDS.names())
    return [choice for choice in space.choices if any(len(row) > 1 and kinds.issuperset(row) for row in choice.options)]


def kinds_at(kinds: Sequence[str], roles: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the attention types in ``kinds`` that each of ``roles`` supports."""
    if "softmax" not in kinds:
        raise ConfigError(f"attention is {', '.join(kinds)}; add softmax, the attention of the trained network")
    allowed = [
        tuple(kind for kind in dict.fromkeys(kinds) if role in ATTENTION_KINDS.get(kind).roles) for role in roles
    ]
    for kind in kinds:
        if not any(kind in kinds_here for kinds_here in allowed):
            raise ConfigError(f"attention {kind!r} does not support {' or '.join(roles)} attention; remove it")
    return allowed


def with_kinds(trained: Mapping[str, Tensor], net: nn.Module) -> dict[str, Tensor]:
    """Return a state dict for ``net``, whose layers have several attention types, from a network with one type.

    Each type gets the trained projections (Kasai et al. 2021, "Finetuning Pretrained Transformers into RNNs"). Other
    tensors keep their values in ``net``.
    """
    kinds = {
        f"{path}.{kind}.": f"{path}."
        for path, attention in net.named_modules()
        if isinstance(attention, nn.ModuleDict)
        for kind, layer in attention.items()
        if isinstance(layer, ElasticSelfAttention | ElasticCrossAttention)
    }
    state = {}
    for name, initial in net.state_dict().items():
        prefix = next((prefix for prefix in kinds if name.startswith(prefix)), None)
        source = name if name in trained or prefix is None else kinds[prefix] + name.removeprefix(prefix)
        state[name] = trained.get(source, initial)
        if (source not in trained and prefix is None) or state[name].shape != initial.shape:
            raise ConfigError(
                f"the trained network has no tensor {name} of shape {tuple(initial.shape)}; give another network"
            )
    return state
