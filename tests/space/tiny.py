"""A small space with everything that spaces may have."""

from __future__ import annotations

from nas_core.space import Choice, SearchSpace


def tiny_space() -> SearchSpace:
    """Two depth genes, one of which allows no layer at all; options that differ between layers."""
    return SearchSpace(
        "tiny",
        [
            Choice.make("activation", ["relu", "gelu"]),
            Choice.make("encoder.layers", [3, 1]),
            Choice.make("encoder.ffn_dim", [[64, 32], [64], [48, 16, 8]], "encoder.layers", 3),
            Choice.make("decoder.layers", [0, 2]),
            Choice.make("decoder.cross", [-1, 2], "decoder.layers", 2, {-1: 1.0, 2: 3.0}, scale=2.0),
        ],
        {"qkv_dim": 16},
    )
