"""The supernet's training command, and how many updates fit into the time there is."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from examples.translation.settings import Settings
from examples.translation.stages import tool
from nas_core.errors import DataError

PACE_SECONDS = 25
"""Length of the trial that finds the pace of training, apart from its start."""
_START_SECONDS = 10.0
_VALIDATION_SHARE = 0.06
_UNTIMED_UPDATES = 10
_LATE = 1.2
"""Training stops at the latest after this many times the minutes it was given, should the machine slow down."""


def train_command(
    settings: Settings, about: Mapping[str, Any], out: Path, user_dir: str, device: str, updates: int
) -> list[object]:
    """``fairseq-train`` for ``updates`` updates, the learning rate falling to zero at the last one."""
    s = settings
    return [
        tool("fairseq-train"), out / "bin", "--user-dir", user_dir,
        "--source-lang", about["source"], "--target-lang", about["target"],
        "--task", "supernet_translation", "--arch", s.arch, "--search-space", s.space,
        "--mos", s.mos, "--mos-experts", s.experts, "--sampling", s.sampling, "--share-all-embeddings",
        "--criterion", "fused_label_smoothed_cross_entropy", "--label-smoothing", 0.1, "--dropout", s.dropout,
        "--optimizer", "adam", "--adam-betas", "(0.9,0.98)", "--clip-norm", 1.0,
        "--lr", s.lr, "--lr-scheduler", "polynomial_decay", "--warmup-updates", min(s.warmup, max(1, updates // 4)),
        "--total-num-update", updates, "--max-update", updates,
        "--max-tokens", s.batch_tokens, "--max-tokens-valid", 4096,
        "--skip-invalid-size-inputs-valid-test", "--seed", s.seed, "--num-workers", 0,
        "--save-dir", out / "supernet", "--no-epoch-checkpoints",
        "--log-format", "json", "--log-interval", 20,
        *(["--cpu"] if device == "cpu" else []),
        *shlex.split(s.train_args),
    ]  # fmt: skip


def trial_command(command: list[object], folder: Path) -> list[object]:
    """The same training from its start for some seconds, leaving nothing behind; ``folder`` holds no checkpoint."""
    limits = ["--stop-time-hours", f"{PACE_SECONDS / 3600:.6f}", "--max-update", 200, "--log-interval", 5]
    return [*command, *limits, "--no-save", "--disable-validation", "--save-dir", folder]


def late_stop(minutes: float) -> list[object]:
    """The bound on time that goes with a number of updates found by a trial."""
    return ["--stop-time-hours", f"{minutes * _LATE / 60:.5f}"] if minutes else []


def updates_within(minutes: float, log: str) -> int:
    """How many updates of the trial with this log fit into the minutes, start and validation included.

    Raises:
        DataError: the log shows too few updates.
    """
    points = []
    for line in log.splitlines():
        _, _, content = line.partition(" | train_inner | ")
        if content.startswith("{"):
            values = json.loads(content)
            points.append((int(values["num_updates"]), float(values["wall"])))
    timed = [point for point in points if point[0] >= _UNTIMED_UPDATES] or points
    if len(timed) < 2 or timed[-1][1] <= timed[0][1]:
        made = points[-1][0] if points else 0
        raise DataError(f"training made only {made} updates in {PACE_SECONDS} s; say how many you want with --updates")
    seconds = (timed[-1][1] - timed[0][1]) / (timed[-1][0] - timed[0][0])
    return max(1, int((minutes * 60 - _START_SECONDS) / (seconds * (1 + _VALIDATION_SHARE))))
