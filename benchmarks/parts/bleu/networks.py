"""Published table of networks of HAT's space: BLEU from scratch and with the weights of four supernets."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.parts.published import DATA, HAT_SPACES
from nas_core.files.reading import read_json
from nas_core.graph import Graphs
from nas_core.models import kind_of
from nas_core.space import Architecture, SearchSpace, get_space

TABLE = DATA / "translation_bleu.json"
SUPERNETS = ("hat", "sandwich", "mos_layer", "mos_neuron")
Array = NDArray[np.float64]
Indices = NDArray[np.int64]
_GENES = {
    "encoder-embed-dim": "encoder.embed_dim",
    "encoder-layer-num": "encoder.layers",
    "encoder-ffn-embed-dim": "encoder.ffn_dim",
    "encoder-self-attention-heads": "encoder.self_heads",
    "decoder-embed-dim": "decoder.embed_dim",
    "decoder-layer-num": "decoder.layers",
    "decoder-ffn-embed-dim": "decoder.ffn_dim",
    "decoder-self-attention-heads": "decoder.self_heads",
    "decoder-ende-attention-heads": "decoder.cross_heads",
    "decoder-arbitrary-ende-attn": "decoder.arbitrary_cross",
}


@dataclass(frozen=True)
class TranslationTask:
    """Networks of one translation task."""

    space: SearchSpace
    architectures: list[Architecture]
    bleu: Array
    """``(N,)`` test BLEU from scratch, to be estimated"""
    valid_bleu: Array
    """``(N,)`` validation BLEU from scratch, not an input"""
    inherited: Array
    """``(N, 4)`` validation BLEU with the weights of each supernet"""
    inherited_test: Array
    """``(N, 4)`` test BLEU with the weights of each supernet, for the comparison without trained networks"""
    params_m: Array
    """``(N,)`` millions of parameters without embeddings"""
    splits: Mapping[str, Indices]
    """Seed -> indices of the published training set"""

    @functools.cached_property
    def graphs(self) -> Graphs:
        return Graphs.of([kind_of(self.space).graph(architecture) for architecture in self.architectures])


@functools.cache
def translation_task(name: str) -> TranslationTask:
    rows = read_json(TABLE)[name]
    space = get_space(HAT_SPACES[name])
    seeds = sorted({split.partition("/")[0] for row in rows for split in row["splits"]})
    return TranslationTask(
        space,
        [space.validate(Architecture(_genes(row["architecture"]))) for row in rows],
        np.array([row["scratch"]["test_BLEU"] for row in rows]),
        np.array([row["scratch"]["valid_BLEU"] for row in rows]),
        np.array([[row[supernet]["valid_BLEU"] for supernet in SUPERNETS] for row in rows]),
        np.array([[row[supernet]["test_BLEU"] for supernet in SUPERNETS] for row in rows]),
        np.array([row["params_without_embeddings"] for row in rows]) / 1e6,
        {seed: np.array([i for i, row in enumerate(rows) if f"{seed}/train" in row["splits"]]) for seed in seeds},
    )


def tasks() -> list[str]:
    """Return the names of the tasks whose search space is available."""
    return [name for name in read_json(TABLE) if name in HAT_SPACES]


def _genes(architecture: Mapping[str, Any]) -> dict[str, Any]:
    depths = {"decoder": architecture["decoder-layer-num"], "encoder": architecture["encoder-layer-num"]}
    return {
        gene: value[: depths[gene.partition(".")[0]]] if isinstance(value := architecture[name], list) else value
        for name, gene in _GENES.items()
    }
