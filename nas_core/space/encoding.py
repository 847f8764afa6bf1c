"""Architectures as numbers, for routers, latency models and rankers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import unknown_choice
from nas_core.space.slots import Rows, Slots

ENCODINGS = ("summary", "layers", "onehot")
"""``summary``: one number per choice, averaged over the layers that exist (HAT's latency features and the encoding that
routers of Mixture-of-Supernets read); ``layers``: one number per gene and layer, 0 where the layer does not exist;
``onehot``: one indicator per option, gene and layer. The first two are divided by each choice's scale."""


def encode(slots: Slots, rows: Rows, how: str) -> NDArray[np.float32]:
    """``(n, features)`` in float32; names by :func:`feature_names`."""
    if how == "summary":
        return _summary(slots, rows)
    if how == "layers":
        units = np.concatenate([np.full(len(c.options), c.unit) for c in slots.choices]).astype(np.float32)
        return slots.codes(rows) / units
    if how == "onehot":
        columns = [rows[:, [slot]] == np.arange(size) for slot, size in enumerate(slots.sizes)]
        return np.concatenate(columns, axis=1).astype(np.float32)
    raise unknown_choice("encoding", how, ENCODINGS)


def _summary(slots: Slots, rows: Rows) -> NDArray[np.float32]:
    codes = slots.codes(rows)
    exists = slots.exists(rows)
    features = np.empty((len(rows), len(slots.choices)), np.float32)
    for index, (choice, columns) in enumerate(zip(slots.choices, slots.columns, strict=True)):
        layers = np.maximum(exists[:, columns].sum(1), 1)
        features[:, index] = codes[:, columns].sum(1) / layers / choice.unit
    return features


def feature_names(slots: Slots, how: str) -> list[str]:
    """Name the columns of an encoding, in order.

    Raises:
        UnknownChoiceError: ``how`` is no encoding.
    """
    if how == "summary":
        return [choice.name + (".mean" if choice.per else "") for choice in slots.choices]
    names = []
    for choice in slots.choices:
        for layer, options in enumerate(choice.options):
            slot = f"{choice.name}.{layer}" if choice.per else choice.name
            names += [slot] if how == "layers" else [f"{slot}={option}" for option in options]
    if how not in ENCODINGS:
        raise unknown_choice("encoding", how, ENCODINGS)
    return names
