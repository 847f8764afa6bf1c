"""Static models for compression: a model of ``transformers`` and the places of its layers."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from hf_ext.families import Family
from hf_ext.kind import LlamaWorkload
from hf_ext.marian import MarianWorkload
from hf_ext.texts import head_of
from nas_core.models.workload import FIRST_WORD, OnePassWorkload, Workload

_LAST = {"self_attn": "out_proj", "cross_attn": "out_proj", "ffn": "fc2"}
"""Sublayer -> name of its output layer in networks of :mod:`nas_core.models`."""


class StaticModel(nn.Module):
    """Model of ``transformers`` without dropout."""

    def __init__(self, model: Any, family: Family) -> None:
        super().__init__()
        self.model, self.family = model, family

    def forward(self, **batch: Any) -> Any:
        return self.model(**batch)

    def train(self, mode: bool = True) -> StaticModel:
        super().train(mode)
        self.model.eval()
        return self

    @property
    def net(self) -> Any:
        """Layers with the names of a network of :mod:`nas_core.models`."""
        stacks = {side: attrgetter(path)(self.model.base_model) for side, path in self.family.layers.items()}
        return SimpleNamespace(**{
            f"{side}_layers" if side else "layers": [self._layer(layer) for layer in stack]
            for side, stack in stacks.items()
        })  # fmt: skip

    def _layer(self, layer: nn.Module) -> Any:
        names: dict[str, Any] = {"norm_first": self.family.norm_first}
        for sublayer, (linear, norm) in self.family.ends.items():
            if hasattr(layer, norm.partition(".")[0]):  # encoders have no cross-attention
                names[sublayer] = SimpleNamespace(**{_LAST[sublayer]: attrgetter(linear)(layer)})
                names[f"{sublayer}_norm"] = attrgetter(norm)(layer)
        return SimpleNamespace(register_forward_hook=layer.register_forward_hook, **names)


def workload_of(model: Any, lengths: Sequence[int], batch: int, device: Any) -> Workload:
    """Return the computation to time: an encoder's pass, a decoding step, or a translation.

    Args:
        lengths: number of tokens of a text, and of its translation.
        batch: number of texts.
    """
    model = model.model if isinstance(model, StaticModel) else model
    head = head_of(model)
    tokens = [torch.full((batch, length), FIRST_WORD, device=device) for length in lengths]
    if head == "causal":
        return LlamaWorkload(model, torch.cat([tokens[0], tokens[0][:, :1]], 1))
    if head == "translation":
        return MarianWorkload(model, tokens[0], tokens[1].T[..., None])
    return OnePassWorkload(model, tokens, device)
