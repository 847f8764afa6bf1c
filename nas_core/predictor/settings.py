"""Settings of a predictor as a command line gives them, and as the data need them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_type_hints

from nas_core.errors import ConfigError, unknown_choice
from nas_core.graph import Graphs
from nas_core.predictor.nn_former.config import NNFormerConfig
from nas_core.predictor.recipes import Recipe
from nas_core.predictor.training.config import TrainConfig

__all__ = ["needed_by", "parsed_settings"]

_OF_THEIR_OWN = {"name", "model", "train", "seed", "kept"}
_SWITCH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parsed_settings(texts: Iterable[str], more: Mapping[str, type] | None = None) -> dict[str, Any]:
    """``["dim=64", "lr=1e-3"]`` as changes of a recipe, each of the type of its field.

    Args:
        more: other settings that are taken, and their types.

    Raises:
        ConfigError: no ``NAME=VALUE``, a name twice, or a value of another type.
        UnknownChoiceError: no such setting.
    """
    kinds = {k: v for c in (Recipe, NNFormerConfig, TrainConfig) for k, v in get_type_hints(c).items()}
    kinds = {name: kind for name, kind in kinds.items() if name not in _OF_THEIR_OWN} | dict(more or {})
    changes: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or not value:
            raise ConfigError(f"setting {text!r}: expected NAME=VALUE, such as dim=64")
        if name not in kinds:
            raise unknown_choice("setting of a predictor", name, kinds)
        if name in changes:
            raise ConfigError(f"setting {name!r} is given twice; give it once")
        changes[name] = _typed(name, value, kinds[name])
    return changes


def _typed(name: str, value: str, kind: type) -> Any:
    try:
        return _SWITCH[value.lower()] if kind is bool else kind(value)
    except (KeyError, ValueError):
        expected = {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, kind.__name__)
        raise ConfigError(f"setting {name} is {value!r}; expected {expected}") from None


def needed_by(graphs: Graphs, recipe: Recipe) -> dict[str, Any]:
    """Changes with which the recipe's model reads these graphs whole: as many attributes, shapes and static features
    as they have, and at least as many kinds of operations and nodes. What was given to the recipe is not changed."""
    model = recipe.model
    widths = {name: getattr(graphs, name) for name in ("attributes", "shapes", "static")}
    wanted = {name: 0 if values is None else int(values.shape[1]) for name, values in widths.items()}
    wanted["operations"] = max(model.operations, int(graphs.ops.max(initial=0)) + 1)
    if model.readout == "class_token" or model.position == "laplacian":
        wanted["max_nodes"] = max(model.max_nodes, int(graphs.sizes.max(initial=0)) + 1)
    return {k: v for k, v in wanted.items() if v != getattr(model, k) and k not in recipe.kept}
