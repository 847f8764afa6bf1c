"""Classification heads of a checkpoint and of the model that reads it."""

from __future__ import annotations

import logging
from typing import Any

from torch import Tensor

from nas_core.models.masked_lm import MaskedLMNet

__all__ = ["fit_heads", "stored_heads"]

logger = logging.getLogger(__name__)

_PREFIX = "net.classification_heads."


def stored_heads(state: dict[str, Tensor], prefix: str = _PREFIX) -> dict[str, tuple[int, int]]:
    """Name -> classes and hidden units of each head whose weights are in a state."""
    names = dict.fromkeys(name.removeprefix(prefix).split(".")[0] for name in state if name.startswith(prefix))
    shapes = {name: state.get(f"{prefix}{name}.out_proj.weight") for name in names}
    return {name: (len(weight), weight.shape[1]) for name, weight in shapes.items() if weight is not None}


def fit_heads(net: MaskedLMNet, state: dict[str, Any], load_all: bool) -> dict[str, Any]:
    """The state with just the heads that the network has, as fairseq's RoBERTa does it: a head that the state lacks, or
    has in another size, keeps the network's weights; one that the network lacks is left out, or added if ``load_all``.
    """
    state, heads = dict(state), dict(net.classification_heads.items())
    for name, (classes, inner) in stored_heads(state).items():
        own = heads.get(name)
        if own is None and load_all:
            net.set_classification_head(name, classes, inner)
        elif own is None or (own.classes, own.inner) != (classes, inner):
            why = "this model has none of that name" if own is None else "this model has it in another size"
            logger.warning("classification head %s of the checkpoint is left out: %s", name, why)
            state = {key: value for key, value in state.items() if not key.startswith(f"{_PREFIX}{name}.")}
    for name, tensor in net.classification_heads.state_dict().items():  # type: ignore[attr-defined]
        state.setdefault(_PREFIX + name, tensor)
    return state
