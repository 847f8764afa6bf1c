"""Curves from fairseq's training log in its formats ``simple`` and ``json``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from nas_core.files.reading import parse_json, real_path
from nas_core.supernet.curves import TrainingCurves

_LINE = re.compile(r" \| INFO \| (train_inner|valid\w*) \| (.*)$")
_SAVE_DIR = re.compile(r"""\bsave_dir['"]?\s*[:=]\s*(['"])(.+?)\1""")
_PAIR = re.compile(r"\b(\w+)[ =](-?\d[\d.e+-]*)")
_OTHER = ("nll_loss", "best_loss")
"""Losses that are not plotted."""


def training_logs(checkpoint: Path) -> list[Path]:
    """Return logs near a checkpoint that name its folder as ``--save-dir``."""
    folder = real_path(checkpoint).parent
    places = sorted(folder.glob("*.log"))
    for parent in (folder.parent / "logs", folder.parent):
        places += [parent / f"{folder.name}.log", parent / "train.log"]
    return [log for log in dict.fromkeys(places) if _saved_into(log, folder)]


def _saved_into(log: Path, folder: Path) -> bool:
    """Return whether fairseq's printed settings name the folder; a relative ``save_dir`` matches its end."""
    with suppress(OSError), log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if match := _SAVE_DIR.search(line):
                named = Path(os.path.normpath(match[2]))
                parts = tuple(part for part in named.parts if part != "..")
                return real_path(named) == folder if named.is_absolute() else folder.parts[-len(parts) :] == parts
            if _LINE.search(line.rstrip()):
                return False
    return False


def training_curves(log: Path) -> TrainingCurves | None:
    """Read losses (bits per token) over updates, of training and of each validated subnet."""
    losses: dict[str, dict[float, float]] = {}
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if match := _LINE.search(line.rstrip()):
                tag, content = match.groups()
                values = dict(_numbers(content))
                update = values.get("num_updates")
                for name, value in values.items():
                    if update is not None and (title := _title(tag, name)):
                        losses.setdefault(title, {})[update] = value  # a resumed training logs some again
    curves = {name: (list(by_update), list(by_update.values())) for name, by_update in losses.items()}
    return TrainingCurves(log, "updates", {"loss (bits per token)": curves}) if curves else None


def _numbers(content: str) -> Iterator[tuple[str, float]]:
    """Yield a line's names and values, without the subset's prefix in ``json``."""
    if content.startswith("{"):
        try:
            pairs = parse_json(content)
        except ValueError:  # half a line of a process that was killed
            return
        subset = next((key.removesuffix("num_updates") for key in pairs if key.endswith("num_updates")), "")
        text = {str(key).removeprefix(subset): value for key, value in pairs.items()}.items()
    else:
        text = dict(_PAIR.findall(content)).items()
    for name, value in text:
        with suppress(TypeError, ValueError):
            yield name, float(value)


def _title(tag: str, name: str) -> str | None:
    if name in _OTHER or not (name == "loss" or name.endswith("_loss")):
        return None
    if tag == "train_inner":
        return "training" if name == "loss" else None
    return "validation" if name == "loss" else f"validation, {name.removesuffix('_loss')}"
