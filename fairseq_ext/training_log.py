"""Training curves from logs of ``fairseq-train``, with ``--log-format simple`` or ``json``."""

from __future__ import annotations

import os
import re
from pathlib import Path

from nas_core.files.reading import real_path
from nas_core.supernet.curves import TrainingCurves

_LINE = re.compile(r" \| INFO \| (train_inner|valid\w*) \| (.*)$")
_SAVE_DIR = re.compile(r"""\bsave_dir['"]?\s*[:=]\s*(['"])(.+?)\1""")
_PAIR = re.compile(r"\b(\w+)[ =](-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\b")
_OTHER = ("nll_loss", "best_loss")
"""Names of losses that are not plotted."""


def training_logs(checkpoint: Path) -> list[Path]:
    """Return the logs of the training of a checkpoint: files nearby that contain its folder as ``--save-dir``."""
    folder = real_path(checkpoint).parent
    paths = sorted(folder.glob("*.log"))
    for parent in (folder.parent / "logs", folder.parent):
        paths += [parent / f"{folder.name}.log", parent / "train.log"]
    return [log for log in dict.fromkeys(paths) if log.is_file() and _saved_into(log, folder)]


def _saved_into(log: Path, folder: Path) -> bool:
    # A relative save_dir matches the end of the folder's path.
    with log.open(encoding="utf-8", errors="replace") as lines:
        match = next((match for line in lines if (match := _SAVE_DIR.search(line))), None)
    if match is None:
        return False
    save_dir = Path(os.path.normpath(match[2]))
    parts = tuple(part for part in save_dir.parts if part != "..")
    return real_path(save_dir) == folder if save_dir.is_absolute() else folder.parts[-len(parts) :] == parts


def training_curves(log: Path) -> TrainingCurves | None:
    """Read training and validation losses (bits per token) over updates; return None if there are none."""
    losses: dict[str, dict[float, float]] = {}
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if match := _LINE.search(line.rstrip()):
                values = _numbers(match[2])
                for name, value in values.items():
                    if "num_updates" in values and (title := _title(match[1], name)):
                        losses.setdefault(title, {})[values["num_updates"]] = value
    curves = {name: (list(by_update), list(by_update.values())) for name, by_update in losses.items()}
    return TrainingCurves(log, "updates", {"loss (bits per token)": curves}) if curves else None


def _numbers(content: str) -> dict[str, float]:
    # The format `json` has the name of the subset as a prefix.
    pairs = _PAIR.findall(content.replace('"', "").replace(":", ""))
    subset = next((name.removesuffix("num_updates") for name, _ in pairs if name.endswith("num_updates")), "")
    return {name.removeprefix(subset): float(value) for name, value in pairs}


def _title(tag: str, name: str) -> str | None:
    if name in _OTHER or not (name == "loss" or name.endswith("_loss")):
        return None
    if tag == "train_inner":
        return "training" if name == "loss" else None
    return "validation" if name == "loss" else f"validation, {name.removesuffix('_loss')}"
