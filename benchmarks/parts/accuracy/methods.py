"""Predictors by name: recipes and changes of them, accuracy models, baselines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.parts.accuracy.graf import Forest, ProcessesAndTrees
from benchmarks.parts.baselines import GCN, LightGBM, Ridge
from benchmarks.parts.resumable import settings_hash
from nas_core.predictor import ACCURACY_MODELS, NNFormerPredictor
from nas_core.predictor.recipes import RECIPES, Recipe, get_recipe

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "ensemble, paper masks": ("ensemble", {"sibling_mask": "paper"}),
    "true siblings": ("paper", {"sibling_mask": "paper"}),
}
"""Method -> recipe and changed settings: with the masks of the paper instead of those of the authors' code."""
MODELS = tuple(name for name in ACCURACY_MODELS.names() if name not in ("nn-former", "prior"))
"""Accuracy models without NN-Former and the prior, which was fitted to these benchmarks."""
BASELINES = ("graf forest", "graf processes and trees", "lightgbm", "lightgbm statistics", "ridge", "gcn")
DEFAULT_METHODS = ("ensemble", "statistics", "graf forest", "graf processes and trees", "lightgbm", "gcn")
METHODS = ("paper", "ensemble", *VARIANTS, *MODELS, *BASELINES)
REVISION = 3
"""Increased when statistics give other results with equal settings."""
TEST_LABELS = ", learned from mean test accuracies"
"""Suffix of a method trained on test accuracies: an upper bound."""


def recipe_of(method: str, changes: Iterable[tuple[str, Any]] = ()) -> Recipe | None:
    """Return the recipe of an NN-Former method; None for others."""
    recipe, variant = VARIANTS.get(method, (method, {}))
    return get_recipe(recipe).with_changes(**{**variant, **dict(changes)}) if recipe in RECIPES else None


def settings_of(method: str, size: int, changes: Iterable[tuple[str, Any]] = ()) -> str | None:
    """Return a hash of the settings of NN-Former or statistics for ``size`` training cells; None for others."""
    if method == "statistics":
        return settings_hash({**dict(changes), "revision": REVISION})
    recipe = recipe_of(method, changes)
    return None if recipe is None else settings_hash(recipe.adapt(size).to_dict())


def trains_networks(method: str) -> bool:
    """Return True if a method trains networks."""
    return method == "gcn" or recipe_of(method) is not None


def make_predictor(
    method: str, graph_limits: tuple[int, int], seed: int, device: str = "cpu", changes: Iterable[tuple[str, Any]] = ()
) -> Any:
    """Return an unfitted predictor.

    Args:
        graph_limits: number of operations, and largest number of nodes.
        device: device of NN-Former.
        changes: changed settings of the recipe or of the GCN.
    """
    recipe = recipe_of(method, changes)
    if recipe is not None:
        return NNFormerPredictor(recipe, seed=seed, device=device, unseen="warn")
    if method in MODELS:
        return ACCURACY_MODELS.get(method)(seed=seed, unseen="warn", **dict(changes))
    if method == "gcn":
        return GCN(graph_limits[0], seed, **dict(changes))
    if method == "ridge":
        return Ridge(*graph_limits)
    if method.startswith("graf"):
        return (Forest if method == "graf forest" else ProcessesAndTrees)(graph_limits[0], seed)
    return LightGBM(*graph_limits, method == "lightgbm", seed)
