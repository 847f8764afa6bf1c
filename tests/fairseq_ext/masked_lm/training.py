"""Options of trainings of tiny masked language models, and their space."""

from __future__ import annotations

from nas_core.space.masked_lm import masked_lm_space
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
PLAIN: list[object] = [
    "--optimizer", "adam", "--batch-size", 64, "--max-update", 1, "--cpu", "--num-workers", 0,
    "--distributed-world-size", 1, "--disable-validation",
]  # fmt: skip
"""Of trainings of fairseq's own networks."""
COMMON: list[object] = [
    "--user-dir", USER_DIR, "--optimizer", "adam", "--lr", 0.01, "--batch-size", 16, "--cpu", "--num-workers", 0,
    "--distributed-world-size", 1, "--log-format", "json", "--log-interval", 1, "--no-epoch-checkpoints",
    "--mos-router-hidden", 8, "--dropout", 0, "--attention-dropout", 0, "--disable-validation",
]  # fmt: skip
"""Of every training of a supernet; fairseq would start a process for each GPU of the machine, also with ``--cpu``."""
MASKED: list[object] = [
    "--criterion", "masked_lm", "--sample-break-mode", "eos", "--tokens-per-sample", 12, "--mask-prob", 0.3,
]  # fmt: skip
"""Of trainings on masked sentences."""
CLASSES: list[object] = [
    "--criterion", "sentence_prediction", "--num-classes", 2, "--init-token", 0, "--max-positions", 12,
]  # fmt: skip
"""Of trainings on sentences with labels."""
SIZES: list[object] = [
    "--encoder-layers", 2, "--encoder-embed-dim", 16, "--encoder-ffn-embed-dim", 24, "--encoder-attention-heads", 4,
]  # fmt: skip
"""Of fairseq's own network."""
FORMS: dict[str, list[object]] = {
    "base": [],
    "prenorm": ["--arch", "roberta_prenorm", "--activation-fn", "gelu_accurate"],
    "untied": ["--untie-weights-roberta", "--activation-fn", "relu", "--max-positions", 20],
}
"""Options of ``fairseq-train``."""
