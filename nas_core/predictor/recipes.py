"""Complete settings of a predictor by name: model, training, scale of the targets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from nas_core.errors import ConfigError, unknown_choice
from nas_core.predictor.config import NNFormerConfig
from nas_core.predictor.trainer import TrainConfig

__all__ = ["Recipe", "get_recipe", "list_recipes"]


@dataclass(frozen=True)
class Recipe:
    """All that decides a predictor beside its data."""

    name: str
    model: NNFormerConfig = field(default_factory=NNFormerConfig.accuracy)
    train: TrainConfig = field(default_factory=TrainConfig)
    targets: str = "none"
    """Scale in which targets are learned: none, mean or normal (by rank)."""
    members: int = 1
    """Models trained from different seeds, whose predictions are averaged."""
    statistics: float = 0.0
    """Share of what is learned from graph statistics in the prediction; the networks have the rest."""
    adapts: bool = False
    """With more graphs than a hundred the networks weigh more and batches grow, see :meth:`adapted`."""
    processes: int = 8
    """Gaussian processes on statistics, each on half of them; one alone sees all."""
    trees: int = 8
    """Boosted trees on statistics."""

    def __post_init__(self) -> None:
        alone = self.members == 0 and self.statistics == 1
        some = min(self.processes, self.trees) >= 0 and self.processes + self.trees > 0
        if not (self.members >= 1 or alone) or not 0 <= self.statistics <= 1 or not some:
            raise ConfigError(
                f"members {self.members}, statistics {self.statistics}, processes {self.processes}, trees {self.trees}"
                " of a predictor; expected members >= 1 (or 0 where statistics is 1), 0 <= statistics <= 1, and"
                " processes or trees"
            )

    def changed(self, **changes: Any) -> Recipe:
        """With other settings; names are those of the recipe, of its model and of its training.

        Raises:
            ConfigError: an unknown name.
        """
        own = {f.name for f in fields(self)} - {"model", "train"}
        model = {k: v for k, v in changes.items() if k in {f.name for f in fields(NNFormerConfig)}}
        train = {k: v for k, v in changes.items() if k in {f.name for f in fields(TrainConfig)}}
        if unknown := set(changes) - own - set(model) - set(train):
            raise ConfigError(f"a predictor has no setting {', '.join(sorted(unknown))}")
        mine = {k: v for k, v in changes.items() if k in own}
        return replace(self, model=replace(self.model, **model), train=replace(self.train, **train), **mine)

    def adapted(self, graphs: int) -> Recipe:
        """The settings for so many training graphs: where the recipe adapts, the share of statistics falls by 0.55
        for ten times as many (never below 0.3), and a batch holds at least one 64th of them. Both were chosen on
        validation accuracies of NAS-Bench-101 with 100 to 4,236 graphs."""
        if not self.adapts:
            return self
        share = float(np.clip(self.statistics - 0.55 * math.log10(graphs / 100), 0.3, 0.9)) if self.statistics else 0.0
        return self.changed(statistics=share, batch_size=max(self.train.batch_size, graphs // 64))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Recipe:
        return cls(**{**data, "model": NNFormerConfig(**data["model"]), "train": TrainConfig(**data["train"])})


_RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("paper", NNFormerConfig.accuracy(sibling_mask="as_released")),
        Recipe(
            "best",
            NNFormerConfig.accuracy(sibling_mask="as_released", depth=6),
            TrainConfig(epochs=100, batch_size=16, lr=1e-3, equal_sizes=False),
            targets="normal",
            members=3,
            statistics=0.9,
            adapts=True,
        ),
        Recipe("statistics", targets="normal", members=0, statistics=1.0),
        Recipe(
            "latency",
            NNFormerConfig.latency(),
            TrainConfig(
                epochs=50, batch_size=16, lr=1e-3, decay="linear", final_lr=0.0, loss="relative", rank_weight=0.0,
                consistency_weight=0.01, ema=0.0, clip=5.0, equal_sizes=False,
            ),
        ),
    )
}  # fmt: skip


def list_recipes() -> list[str]:
    return list(_RECIPES)


def get_recipe(name: str) -> Recipe:
    """Raises:
    UnknownChoiceError: no such recipe; the message lists them.
    """
    if name not in _RECIPES:
        raise unknown_choice("recipe of a predictor", name, _RECIPES)
    return _RECIPES[name]
