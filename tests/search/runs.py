"""Runs of a search by evolution under two limits, and their journals."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nas_core.search import EvolutionConfig, HATEvolution, SearchResult, search
from nas_core.space import Architecture
from tests.contracts.strategy import SPACE, limit, quality

CONFIG = EvolutionConfig(iterations=4, population=20, parents=5)
LIMITS = (3000.0, 2500.0)


def run(
    folder: Path,
    evaluate: Callable[[Architecture], Mapping[str, Any]] | None = None,
    limits: tuple[float, ...] = LIMITS,
    config: EvolutionConfig = CONFIG,
    progress: bool = False,
    **options: Any,
) -> SearchResult:
    strategies = {limit(value).label: HATEvolution(SPACE, [limit(value)], config, seed=3) for value in limits}
    return search(strategies, evaluate or (lambda a: {"loss": quality(a)}), folder, progress=progress, **options)


def journal(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
