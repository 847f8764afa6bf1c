"""Settings of RankNAS."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError
from nas_core.search.strategies.ranker import RankerConfig

PRUNE_BY = ("metric-and-limits", "metric")
"""What a gene has to matter to in order to stay free."""

RANKERS = ("boosted", "regression", "nn-former", "improvement")
"""What may order architectures: trees that learn pairs, trees that learn values, a network that sees graphs, expected
improvement by what graph statistics predict and how sure they are."""

_RANGES = {
    "samples": Range(2),
    "rankings": Range(1),
    "per_ranking": Range(1),
    "explore": Range(0, 1),
    "keep_genes": Range(0),
    "candidates": Range(10),
    "generations": Range(0),
    "parents": Range(2),
    "children": Range(1),
    "mutation_prob": Range(0, 1, without=(0,)),
}


@dataclass(frozen=True, kw_only=True)
class RankNASConfig:
    """Settings of RankNAS.

    Raises:
        ConfigError, UnknownChoiceError: a value out of range.
    """

    samples: int = 100
    """Random architectures that the first ranking is learned from."""
    rankings: int = 8
    """Rankings learned one after another, each from all evaluations so far."""
    per_ranking: int = 25
    """Architectures that each ranking proposes for evaluation."""
    explore: float = 0.2
    """Share of these that are children of the best evaluated architectures instead, whatever the ranking says: where
    it is wrong, it learns from them."""
    keep_genes: int = 5
    """Genes that stay free, the most important ones for the metric and as many for each limited metric; 0: all."""
    prune_by: str = field(default=PRUNE_BY[0], metadata={"choices": PRUNE_BY})
    """What a gene has to matter to in order to stay free; with ``metric``, limits do not count."""
    candidates: int = 2000
    """Random architectures that evolution in the ranking starts from."""
    generations: int = 20
    """Generations of evolution in the ranking; they cost no evaluation."""
    parents: int = 100
    """Best-ranked architectures that have children."""
    children: int = 400
    """Children by mutation, and as many by crossover, in each generation of evolution in the ranking."""
    mutation_prob: float = 0.3
    """Probability with which mutation replaces a gene."""
    ranker: str = field(default=RANKERS[0], metadata={"choices": RANKERS})
    """What orders architectures: gradient-boosted trees that learn which of two is better (boosted) or values
    (regression), a network that sees each architecture as a graph (nn-former), or expected improvement over the best so
    far, by graph statistics and their spread (improvement)."""
    trees: RankerConfig = field(default_factory=RankerConfig)
    """Settings of the boosted trees by name, such as encoding or members; what they learn, ``ranker`` says."""

    def __post_init__(self) -> None:
        check_fields(self, ranges=_RANGES)
        if not isinstance(self.trees, RankerConfig):
            raise ConfigError(f"trees is {self.trees!r}; expected a RankerConfig")
        learned = "regression" if self.ranker == "regression" else "pairwise"
        if self.trees.objective not in (learned, RankerConfig.objective):
            raise ConfigError(f"trees learn {self.trees.objective!r} with ranker {self.ranker!r}; give ranker alone")
        object.__setattr__(self, "trees", replace(self.trees, objective=learned))
