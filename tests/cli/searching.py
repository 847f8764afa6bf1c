"""A space, a latency model and settings so small that `nas-ext search` ends in moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from nas_core.latency import TimingConfig
from nas_core.latency.by_genes.linear import LinearModel
from nas_core.latency.machine import describe_machine
from nas_core.models.translation.workload import TranslationWorkloadConfig
from nas_core.space import Architecture, SearchSpace, translation_space

SPACE = translation_space(
    "toy",
    embed_dims=(16, 8),
    ffn_dims=(32, 16),
    heads=(2, 1),
    encoder_layers=(2,),
    decoder_layers=(2, 1),
    qkv_dim=8,
)


WORKLOAD = TranslationWorkloadConfig(source_vocab=20, target_vocab=24, source_length=4, target_length=3, beam=2)


SMALL = {
    "evolution": ["--set", "iterations=3", "--set", "population=16", "--set", "parents=4"],
    "multi-objective": ["--set", "iterations=3", "--set", "population=6"],
}


def score(architecture: Architecture) -> dict[str, float]:
    """Larger is better, up to noise that the architecture decides."""
    noise = int(architecture.key, 16) % 1000 / 1e5
    return {"loss": 5.0 - 0.1 * float(SPACE.encode(architecture).sum()) + noise, "nll_loss": 4.0}


def latency_model(path: Path, space: SearchSpace = SPACE) -> Path:
    rows = space.sample_rows(np.random.default_rng(0), 80)
    model = LinearModel(space)
    model.fit(rows, 1.0 + space.slots.codes(rows).sum(1) / 100)
    timing = TimingConfig(warmup=0, repeats=2)
    model.info = {
        "settings": {"workload": {"kind": "translation", **asdict(WORKLOAD)}, "timing": asdict(timing), "seed": 0},
        "machine": describe_machine("cpu", 1),
        "reference_ms": 2.0,
    }
    model.save(path)
    return path


Search = Callable[..., int]
