"""Settings of NN-Former by name, and as the data need them."""

from __future__ import annotations

from typing import Any, get_type_hints

from nas_core.graph import Graphs
from nas_core.predictor.nn_former.config import NNFormerConfig
from nas_core.predictor.recipes import Recipe
from nas_core.predictor.training.config import TrainConfig

__all__ = ["needed_by", "recipe_types"]

_OF_THEIR_OWN = {"name", "model", "train", "seed", "kept"}


def recipe_types() -> dict[str, type]:
    """Settings of a recipe, of its model and of its training that may be changed, and their types."""
    types = {k: v for c in (Recipe, NNFormerConfig, TrainConfig) for k, v in get_type_hints(c).items()}
    return {name: type_ for name, type_ in types.items() if name not in _OF_THEIR_OWN}


def needed_by(graphs: Graphs, recipe: Recipe, room: int = 0) -> dict[str, Any]:
    """Changes with which the recipe's model reads these graphs whole: as many attributes, shapes and static features
    as they have, and at least as many kinds of operations and nodes. What was given to the recipe is not changed, but
    by ``room`` operations and nodes, which the graphs got beside those that were thought of."""
    model = recipe.model
    widths = {name: getattr(graphs, name) for name in ("attributes", "shapes", "static")}
    wanted = {name: 0 if values is None else int(values.shape[1]) for name, values in widths.items()}
    wanted["operations"] = max(model.operations, int(graphs.ops.max(initial=0)) + 1)
    if model.readout == "class_token" or model.position == "laplacian":
        wanted["max_nodes"] = max(model.max_nodes, int(graphs.sizes.max(initial=0)) + 1)
    kept = {name: getattr(model, name) + room for name in ("operations", "max_nodes") if name in recipe.kept and room}
    return kept | {k: v for k, v in wanted.items() if v != getattr(model, k) and k not in recipe.kept}
