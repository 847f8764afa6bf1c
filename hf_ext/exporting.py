"""Export of encoders and image classifiers as programs that run without this project."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hf_ext.families import FAMILIES, Family
from hf_ext.folder import read_model
from hf_ext.network import genes_of
from nas_core.errors import UnsupportedError
from nas_core.export.parts import Exportable, ExportModule, OpenDim, Value
from nas_core.space import Architecture, Choice, SearchSpace

_BATCH, _LENGTH = "batch", "length"


class _Positional(nn.Module):
    """Model whose inputs are positional and whose outputs are a tuple."""

    def __init__(self, model: Any, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *states: Tensor) -> tuple[Tensor, ...]:
        return self.model(**dict(zip(self.names, states, strict=True))).to_tuple()  # type: ignore[no-any-return]


def exportable(model: Any, architecture: Architecture) -> Exportable:
    """Return a model of ``transformers`` as one program, whose inputs are named as those of the model.

    Raises:
        UnsupportedError: the model is a decoder or translates.
    """
    config = model.config
    family = FAMILIES[config.model_type]
    inputs, dims = _inputs(model, family)
    names = [value.name for value in inputs]
    part = ExportModule("model", _Positional(model.eval(), names), inputs, (), dims)
    with torch.no_grad():
        outputs = model(**dict(zip(names, part.examples(3), strict=True)))
    part = ExportModule("model", part.module, inputs, tuple(Value(name, ()) for name in outputs), dims)
    info = {"kind": family.kind, "architecture": architecture.to_dict(), "class": type(model).__name__}
    return Exportable((part,), info)


def _inputs(model: Any, family: Family) -> tuple[tuple[Value, ...], tuple[OpenDim, ...]]:
    config, batch = model.config, OpenDim(_BATCH)
    if family.kind == "image":
        size = config.image_size
        return (Value("pixel_values", (_BATCH, config.num_channels, size, size)),), (batch,)
    if family.kind != "masked_lm":
        raise UnsupportedError(
            f"{type(model).__name__} decodes token by token, which nas-ext does not export; extract the network, and"
            " export the folder with OnnxExporter of transformers"
        )
    shape = (_BATCH, _LENGTH)
    padding = 0 if config.pad_token_id is None else config.pad_token_id
    values = [
        Value("input_ids", shape, "sentence", config.vocab_size, padding),
        Value("attention_mask", shape, "padding"),
    ]
    if config.type_vocab_size > 1 and "token_type_ids" in inspect.signature(model.forward).parameters:
        values.append(Value("token_type_ids", shape, "token", config.type_vocab_size))
    return tuple(values), (batch, OpenDim(_LENGTH, largest=family.constant["sequence_length"](config)))


class PlainModel:
    """Model folder without a supernet, for export."""

    def __init__(self, folder: Path) -> None:
        self.model = read_model(folder)
        self.space = SearchSpace(
            folder.name, [Choice.make(gene, [size]) for gene, size in genes_of(self.model).items()]
        )

    def exportable(self, architecture: Architecture) -> Exportable:
        return exportable(self.model, architecture)
