"""Optuna plug-in: the searches of ``nas_core`` as samplers, trained supernets as objectives, and searches that many
machines share through a storage of Optuna.

Importing this package imports nothing of Optuna; a name does when it is first used. It translates between Optuna and
``nas_core``; what is computed lives there.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna_ext.genes import architecture_of, distributions_of, space_of, suggest_architecture
    from optuna_ext.objective import as_objective
    from optuna_ext.sampler import SearchSampler
    from optuna_ext.samplers import HATEvolutionSampler, MultiObjectiveSampler, RankNASSampler

__all__ = [
    "HATEvolutionSampler",
    "MultiObjectiveSampler",
    "RankNASSampler",
    "SearchSampler",
    "architecture_of",
    "as_objective",
    "distributions_of",
    "space_of",
    "suggest_architecture",
]

_HOMES = {
    "HATEvolutionSampler": "samplers",
    "MultiObjectiveSampler": "samplers",
    "RankNASSampler": "samplers",
    "SearchSampler": "sampler",
    "architecture_of": "genes",
    "as_objective": "objective",
    "distributions_of": "genes",
    "space_of": "genes",
    "suggest_architecture": "genes",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
