"""Settings of searches as the release before strategies had one name wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nas_core.search import STRATEGIES

__all__ = ["as_before"]

BEFORE: dict[str, dict[str, str]] = {
    "ranknas": {
        "rankings": "rounds", "per_ranking": "finalists", "keep_genes": "keep", "generations": "iterations",
    },
    "multi-objective": {"population": "parents"},
}  # fmt: skip


def as_before(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What that release wrote for what a strategy describes today."""
    name = settings["strategy"]
    former = {BEFORE.get(name, {}).get(key, key): value for key, value in settings.items()}
    if name == "ranknas":
        ranker = former["ranker"]
        by = "nn-former" if ranker == "nn-former" else "boosted trees"
        former |= {"ranker": former.pop("trees"), "ranker_name": by}
    return {**former, "strategy": STRATEGIES.get(name).former_name}
