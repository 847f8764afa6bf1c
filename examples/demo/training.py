"""The supernet's training command, and how many updates it gets."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.demo.pace import Pace, spoken
from examples.demo.settings import ENOUGH_UPDATES, Settings
from examples.demo.stages import tool

LEARNED_BLEU = 2.0
"""What no network that has learned something stays below."""
SAVES, SAVE_APART = 8, 50
"""How often training is validated and saved on its way, and how many updates apart at least; an interrupted one goes on
from there."""


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
        "--save-interval-updates", max(SAVE_APART, updates // SAVES), "--keep-interval-updates", 1,
        "--skip-invalid-size-inputs-valid-test", "--seed", s.seed, "--num-workers", 0,
        "--save-dir", out / "supernet", "--no-epoch-checkpoints",
        "--log-format", "json", "--log-interval", 20,
        *(["--cpu"] if device == "cpu" else []),
        *shlex.split(s.train_args),
    ]  # fmt: skip


def trial_command(command: list[object], folder: Path) -> list[object]:
    """The same training from its start, leaving nothing behind, until it is ended; ``folder`` holds no checkpoint."""
    alone = ["--no-save", "--disable-validation", "--save-dir", folder]
    return [*command, "--max-update", 200, "--log-interval", 1, *alone]


@dataclass(frozen=True)
class Plan:
    """How many updates training makes, and what to tell about it."""

    updates: int
    told: str


def plan(settings: Settings, pace: Pace) -> Plan:
    """The updates asked for; else as many as fit into the minutes, but never fewer than teach a network something.

    Only a user who gives the minutes gets fewer, and is told.
    """
    fits, enough = pace.updates_in(settings.budget[0]), ENOUGH_UPDATES
    if settings.updates or settings.minutes:
        updates = settings.updates or fits
        few = f"; usually {enough} are needed for networks to translate" if updates < enough else ""
    else:
        updates = max(fits, enough)
        few = f"; {settings.budget[0]:g} minutes hold {fits}, too few to learn from" if fits < enough else ""
    each = f"{pace.seconds_per_update:.2f} s each with {_threads(pace.threads)}"
    if settings.threads not in (0, pace.threads):  # a run that is continued keeps its number of updates
        each += f" when the run was begun, now {_threads(settings.threads)}"
    return Plan(updates, f"{updates} updates, {spoken(pace.seconds_of(updates))} ({each}){few}")


def _threads(number: int) -> str:
    return f"{number} thread{'s' if number > 1 else ''}"


def too_little_learned(bleu: Sequence[float], updates: int) -> str:
    """What to do if none of the networks translates, empty if one does."""
    best = max(bleu)
    if best >= LEARNED_BLEU:
        return ""
    return (
        f"No network translates yet (best BLEU {best:.1f}): {updates} updates were too few for this corpus."
        f" The same command with --updates {2 * updates} trains on from here."
    )
