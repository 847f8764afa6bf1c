"""Options of trainings of tiny masked language models, and their space."""

from __future__ import annotations

from nas_core.space import masked_lm_space
from tests.fairseq_ext.running import USER_DIR

SPACE = masked_lm_space(
    "tiny",
    layers=(2, 1),
    embed_dims=(24, 16),
    ffn_dims=(32, 16),
    heads=(3, 2),
    head_dim=8,
    sequence_length=12,
)
COMMON: list[object] = [
    "--user-dir", USER_DIR, "--optimizer", "adam", "--lr", 0.01, "--batch-size", 16, "--cpu", "--num-workers", 0,
    "--distributed-world-size", 1, "--log-format", "json", "--log-interval", 1, "--no-epoch-checkpoints",
    "--mos-router-hidden", 8, "--dropout", 0, "--attention-dropout", 0, "--disable-validation",
]  # fmt: skip
"""Of every training; fairseq would start a process for each GPU of the machine, also with ``--cpu``."""
MASKED: list[object] = [
    "--criterion", "masked_lm", "--sample-break-mode", "eos", "--tokens-per-sample", 12, "--mask-prob", 0.3,
]  # fmt: skip
"""Of trainings on masked sentences."""
