"""NN-Former with NASLib's predictor interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nas_core import predictor as core
from nas_core.predictor.recipes import Recipe, get_recipe
from naslib_ext.predictor import AccuracyPredictor

REPORTED = ("epochs", "batch_size", "lr", "weight_decay", "rank_weight", "dropout", "dim", "depth")
"""Settings that are always hyperparameters."""


class NNFormerPredictor(AccuracyPredictor):
    """NN-Former with its recipes; see also :class:`~naslib_ext.predictor.AccuracyPredictor`.

    Args:
        recipe: a name of ``nas_core.predictor.recipes.list_recipes()`` or a ``Recipe``.
        epochs: passes over the training architectures; None: the recipe's (``paper``: 3000, for a GPU).
        options: other arguments of the base class, and settings of the recipe by name (``lr=3e-4, dim=64``).
    """

    def __init__(
        self,
        ss_type: str | None = None,
        encoding_type: Any = None,
        recipe: str | Recipe = "paper",
        seed: int = 0,
        epochs: int | None = None,
        **options: Any,
    ) -> None:
        self.recipe = get_recipe(recipe) if isinstance(recipe, str) else recipe
        super().__init__(ss_type, encoding_type, model=core.NNFormerPredictor.name, seed=seed, epochs=epochs, **options)

    def _defaults(self, changed: Mapping[str, Any]) -> dict[str, Any]:
        self.recipe = self.recipe.changed(**changed)
        flat = _flat(self.recipe)
        return {"recipe": self.recipe.name, **{name: flat[name] for name in dict.fromkeys((*REPORTED, *changed))}}

    def _create(self, hyperparams: Mapping[str, Any], seed: int, units: str = "any") -> core.AccuracyModel:
        recipe = self._recipe(hyperparams)
        if _raw(recipe) and units == "any":
            recipe = recipe.changed(targets="mean")
        return core.NNFormerPredictor(recipe, seed=seed, device=str(self.device), unseen="ignore")

    def _units_of(self, hyperparams: Mapping[str, Any], units: str) -> float:
        return 100.0 if units == "percent" and _raw(self._recipe(hyperparams)) else 1.0

    def _random(self) -> dict[str, Any]:
        return {
            "lr": float(np.exp(np.random.uniform(np.log(3e-5), np.log(3e-3)))),
            "weight_decay": float(np.exp(np.random.uniform(np.log(1e-3), np.log(1e-1)))),
            "rank_weight": float(np.exp(np.random.uniform(np.log(0.05), np.log(1.0)))),
            "dropout": float(np.random.uniform(0.0, 0.2)),
            "batch_size": int(np.random.choice([16, 32, 64, 128])),
        }

    def _recipe(self, hyperparams: Mapping[str, Any]) -> Recipe:
        settings = dict(hyperparams)
        name = settings.pop("recipe", self.recipe.name)
        base = self.recipe if name == self.recipe.name else get_recipe(name)
        now = _flat(base)
        return base.changed(**{k: v for k, v in settings.items() if k not in now or now[k] != v})


def _raw(recipe: Recipe) -> bool:
    """Return whether targets are not normalised and have to be fractions."""
    return recipe.targets == "none" and recipe.train.loss == "mse"


def _flat(recipe: Recipe) -> dict[str, Any]:
    settings = recipe.to_dict()
    return {**settings, **settings["model"], **settings["train"]}
