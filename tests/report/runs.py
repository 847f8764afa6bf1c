"""Runs of a search for tests of what is shown of them: a space with two kinds of attention, scored by a formula."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nas_core.search import Constraint, RandomConfig, RandomSearch, search
from nas_core.space import Architecture, get_space

__all__ = ["made_run", "unfinished"]

SPACE = get_space("mformer_translation_small")


def _size(architecture: Architecture) -> float:
    return float(SPACE.encode([architecture]).sum()) + int(architecture.key[:4], 16) / 2**16


def made_run(folder: Path, seed: int = 0, evaluations: int = 20) -> Path:
    """The folder of a random search under a limit of 16 ms."""

    def latency(rows: Any) -> Any:
        return 2 + SPACE.encode(SPACE.architectures(rows)).astype(float).sum(1) / 3

    def evaluate(architecture: Architecture) -> dict[str, float]:
        return {"loss": 6 - _size(architecture) / 15 + int(architecture.key[4:6], 16) / 999}

    limits = [Constraint("latency_ms", 16, latency)]
    strategy = RandomSearch(SPACE, limits, RandomConfig(evaluations=evaluations), seed=seed)
    search({"latency_ms<=16": strategy}, evaluate, folder, finalists=4, progress=False)
    return folder


def unfinished(folder: Path, left: int) -> list[str]:
    """Take a finished search back to its first ``left`` evaluations; returns the lines of its journal that come after
    them."""
    journal = folder / "journal.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    journal.write_text("".join(lines[:left]), encoding="utf-8")
    (folder / "finalists.json").unlink()
    return lines[left:]
