"""Optuna plug-in: the searches of ``nas_core`` as samplers, trained supernets as objectives, and searches that many
machines share through a storage of Optuna.

Importing this package imports nothing of Optuna; a name does when it is first used. It translates between Optuna and
``nas_core``; what is computed lives there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

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

__getattr__, __dir__ = lazy_names(__name__)
