"""Recipes: named settings of :class:`~nas_core.predictor.NNFormerPredictor`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, get_type_hints

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError, unknown_choice
from nas_core.graph import Graphs
from nas_core.predictor.nn_former.config import NNFormerConfig
from nas_core.predictor.targets import SCALES
from nas_core.predictor.training import TrainConfig

ADAPTIVE = ("attributes", "batch_size", "max_nodes", "operations", "shapes", "static")
"""Settings that adapt to the data by default."""
_RANGES = {"members": Range(1)}


@dataclass(frozen=True)
class Recipe:
    """Settings of a predictor: networks, their training and scale of the targets."""

    name: str
    model: NNFormerConfig = field(default_factory=NNFormerConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    targets: str = field(default="none", metadata={"choices": SCALES})
    """Scale of targets: none (for fractions), mean or normal (by rank)."""
    members: int = 1
    """Number of networks with different seeds, whose predictions are averaged."""
    adapts: bool = False
    """True: use larger batches for more graphs."""
    fixed: tuple[str, ...] = ()
    """Settings changed by the user, which do not adapt to the data."""

    def __post_init__(self) -> None:
        check_fields(self, "a predictor", _RANGES)
        if self.model.readout == "logarithm" and (self.train.loss == "mse" or self.targets != "none"):
            raise ConfigError(
                f"readout logarithm with loss {self.train.loss!r} and targets {self.targets!r} is not supported; give"
                " loss relative or log, and targets none"
            )

    def with_changes(self, **changes: Any) -> Recipe:
        """Return a recipe with changed settings of it, its networks or training, which no longer adapt to data."""
        fixed = {*self.fixed, *(name for name in changes if name in ADAPTIVE)}
        return replace(self.replace(changes), fixed=tuple(sorted(fixed)))

    def replace(self, changes: Mapping[str, Any]) -> Recipe:
        """Return the recipe of :meth:`with_changes`, but with settings that may still adapt to the data."""
        recipe, model, train = (
            {f.name: changes[f.name] for f in fields(config) if f.name in changes}
            for config in (self, self.model, self.train)
        )
        if unknown := set(changes) - set(recipe) - set(model) - set(train):
            raise ConfigError(
                f"nn-former has no setting {', '.join(sorted(unknown))}; see Recipe in nas_core/predictor/recipes.py"
            )
        return replace(self, **{"model": replace(self.model, **model), "train": replace(self.train, **train), **recipe})

    def adapt(self, graphs: int) -> Recipe:
        """Return the recipe for a number of training graphs: batches have at least 1/64 of the graphs."""
        # chosen on validation accuracies of NAS-Bench-101 with 100 to 4,236 graphs
        if not self.adapts or "batch_size" in self.fixed:
            return self
        return self.replace({"batch_size": max(self.train.batch_size, graphs // 64)})

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Recipe:
        configs = {"model": NNFormerConfig(**data["model"]), "train": TrainConfig(**data["train"])}
        return cls(**{**data, **configs, "fixed": tuple(data["fixed"])})


RECIPES = {
    recipe.name: recipe
    for recipe in (
        # Training and masks of the released code, see NNFormerConfig.sibling_mask and TrainConfig.final_lr.
        Recipe("paper", NNFormerConfig(sibling_mask="as_released")),
        # Minutes instead of hours on a CPU, and a standard deviation.
        Recipe(
            "ensemble",
            NNFormerConfig(sibling_mask="as_released", depth=6),
            TrainConfig(epochs=100, batch_size=16, lr=1e-3, equal_sizes=False),
            targets="normal",
            members=5,
            adapts=True,
        ),
        Recipe(
            "latency",
            NNFormerConfig.latency(),
            TrainConfig(
                epochs=50, batch_size=16, lr=1e-3, decay="linear", final_lr=0.0, loss="relative", rank_weight=0.0,
                consistency_weight=0.01, ema=0.0, clip=5.0, equal_sizes=False,
            ),
        ),
        # Ours, for data sets of a thousand networks.
        Recipe(
            "network-latency",
            NNFormerConfig.latency(dim=64, readout="logarithm", layer_scale=0.1),
            TrainConfig(
                epochs=30, batch_size=16, copies=1, lr=3e-3, decay="cosine", final_lr=0.0, loss="log", rank_weight=0.0,
                consistency_weight=0.0, ema=0.99, clip=10.0, equal_sizes=False, precision="fp32",
            ),
        ),
    )
}  # fmt: skip


def get_recipe(name: str) -> Recipe:
    """Return a recipe by name."""
    if name not in RECIPES:
        raise unknown_choice("recipe of nn-former", name, RECIPES)
    return RECIPES[name]


def recipe_types() -> dict[str, type]:
    types = {k: v for c in (Recipe, NNFormerConfig, TrainConfig) for k, v in get_type_hints(c).items()}
    return {name: kind for name, kind in types.items() if name not in {"name", "model", "train", "seed", "fixed"}}


def required_settings(graphs: Graphs, recipe: Recipe, added: int = 0) -> dict[str, Any]:
    """Return the settings that a recipe must change to support the features and operations of graphs.

    Args:
        added: number of operations and nodes that a fit added to the user's graphs.
    """
    model = recipe.model
    widths = {name: getattr(graphs, name) for name in ("attributes", "shapes", "static")}
    needed = {name: 0 if values is None else int(values.shape[1]) for name, values in widths.items()}
    needed["operations"] = max(model.operations, int(graphs.ops.max(initial=0)) + 1)
    if model.readout == "class_token":
        needed["max_nodes"] = max(model.max_nodes, int(graphs.sizes.max(initial=0)) + 1)
    spare = {
        name: getattr(model, name) + added for name in ("operations", "max_nodes") if name in recipe.fixed and added
    }
    return spare | {k: v for k, v in needed.items() if v != getattr(model, k) and k not in recipe.fixed}
