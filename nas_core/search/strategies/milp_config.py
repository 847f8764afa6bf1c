"""Settings of the search by integer programs."""

from __future__ import annotations

from dataclasses import dataclass

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError

_RANGES = {
    "evaluations": Range(2),
    "single_changes": Range(0),
    "per_round": Range(1),
    "explore": Range(0, 1),
    "solves": Range(1),
    "nodes": Range(1),
    "gap": Range(0, 1),
}


@dataclass(frozen=True, kw_only=True)
class MILPConfig:
    """Settings of the search by integer programs.

    Raises:
        ConfigError: a value out of range, or more single changes than evaluations.
    """

    evaluations: int = 300
    """Architectures asked for at most."""
    single_changes: int = 60
    """So many of them at most differ from the reference in one gene; of more, those are taken that save most."""
    per_round: int = 10
    """Proposals between two fits of the additive model."""
    explore: float = 0.6
    """Share of the proposals that are best in a model drawn from those that the results allow, and not in the fitted
    one."""
    solves: int = 8
    """Integer programs solved for one proposal at most, each with a budget corrected by the solution before."""
    nodes: int = 500
    """Nodes of branch and bound for each of them at most: with a cap on time, a search would not be repeatable."""
    gap: float = 0.01
    """How far a solution may be from the best one, as a share of the sum of its parts; 0: not at all, and slower."""

    def __post_init__(self) -> None:
        check_fields(self, ranges=_RANGES)
        if self.single_changes >= self.evaluations:
            raise ConfigError(
                f"single_changes is {self.single_changes} and evaluations {self.evaluations}, which leaves nothing for"
                " the reference; give fewer single changes"
            )
