"""LightGBM's text of boosted trees, looked at before LightGBM is: it trusts what it reads.

A number that is out of place makes it read beside its arrays (the process dies), follow a circle of nodes for ever, or
take memory without end. Here the text of a regression is checked line by line, and nothing but the trees is handed on.
"""

from __future__ import annotations

import re

from nas_core.errors import DataError

__all__ = ["checked_trees"]

_WHOLE = r"-?\d{1,9}"
_NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]\d{1,3})?"
_LIMIT = rf"(?:{_NUMBER}|-?inf)"
"""A threshold may be infinite: it divides missing values from all others."""
_RANGE = rf"(?:none|\[{_NUMBER}:{_NUMBER}\])"
_KINDS = {"whole": _WHOLE, "number": _NUMBER, "limit": _LIMIT, "range": _RANGE, "name": r"[^\s=]+"}
_LISTS = {kind: re.compile(f"(?:{one}(?: {one})*)?") for kind, one in _KINDS.items()}
_CONSTANT = {"num_class": "1", "num_tree_per_iteration": "1", "label_index": "0", "objective": "regression"}
_INNER = {
    "split_feature": "whole", "split_gain": "limit", "threshold": "limit", "decision_type": "whole",
    "left_child": "whole", "right_child": "whole", "internal_value": "limit", "internal_weight": "limit",
    "internal_count": "whole",
}  # fmt: skip
"""One for each node with children."""
_LEAVES = {"leaf_value": "number", "leaf_weight": "limit", "leaf_count": "whole"}
"""One for each leaf."""
_SINGLE = {"num_leaves": "whole", "num_cat": "whole", "is_linear": "whole", "shrinkage": "number"}
_DECISIONS = frozenset(range(0, 12, 2))
"""By a threshold, with any treatment of missing values; odd ones compare categories."""
_END = "end of trees"
_REST = "\n\nfeature_importances:\n\nparameters:\nend of parameters\n\npandas_categorical:null\n"


def checked_trees(text: str, features: int | None = None) -> str:
    """The part of a model's text that predictions need, in which all numbers fit together.

    Args:
        features: how many numbers the model must read.

    Raises:
        DataError: the text is no regression by single thresholds that LightGBM wrote, or was altered.
    """
    whole, end, _ = text.partition(f"\n{_END}\n")
    head, *trees = re.split(r"\n(?=Tree=)", whole)
    if not end or not head.startswith("tree\nversion=v"):
        raise DataError("expected what LightGBM writes, from 'tree' to 'end of trees'")
    width, sizes = _checked_head(head.split("\n")[1:])
    if features is not None and width != features:
        raise DataError(f"they read {width} numbers; expected {features}")
    if sizes != [len(tree) + 1 for tree in trees]:
        raise DataError(f"{len(sizes)} trees were written; there are {len(trees)}, or some have another length")
    for number, tree in enumerate(trees):
        try:
            _check_tree(tree.split("\n"), number, width)
        except DataError as error:
            raise DataError(f"tree {number}: {error}") from None
    return f"{whole}{end}{_REST}"


def _fields(lines: list[str], known: dict[str, str]) -> dict[str, list[str]]:
    """Values by name, each of its kind; all names must be there, once, and no others."""
    found: dict[str, list[str]] = {}
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals or name not in known or name in found:
            raise DataError(f"line {line[:40]!r} is unknown or stands there twice")
        if not _LISTS[known[name]].fullmatch(value):
            raise DataError(f"{name} holds what is no {known[name]}")
        found[name] = value.split()
    if absent := known.keys() - found.keys():
        raise DataError(f"{min(absent)} is missing")
    return found


def _checked_head(lines: list[str]) -> tuple[int, list[int]]:
    """How many numbers are read, and the lengths of the trees."""
    kinds = dict.fromkeys(["version", "objective", "feature_names"], "name") | {"feature_infos": "range"}
    kinds |= dict.fromkeys(["num_class", "num_tree_per_iteration", "label_index", "max_feature_idx"], "whole")
    found = _fields([line for line in lines if line], {**kinds, "tree_sizes": "whole"})
    for name, value in _CONSTANT.items():
        if found[name] != [value]:
            raise DataError(f"{name} is {' '.join(found[name])[:40]!r}; expected {value}")
    width = len(found["feature_names"])
    if found["max_feature_idx"] != [str(width - 1)] or len(found["feature_infos"]) != width:
        raise DataError(f"names of {width} numbers, and not as many descriptions")
    return width, [int(size) for size in found["tree_sizes"]]


def _check_tree(lines: list[str], number: int, width: int) -> None:
    if lines[0] != f"Tree={number}":
        raise DataError(f"it is called {lines[0][:40]!r}")
    found = _fields([line for line in lines[1:] if line], {**_SINGLE, **_INNER, **_LEAVES})
    if any(len(found[name]) != 1 for name in _SINGLE) or found["num_cat"] != ["0"] or found["is_linear"] != ["0"]:
        raise DataError("its leaves are no constants behind thresholds")
    leaves = int(found["num_leaves"][0])
    for name in (*_INNER, *_LEAVES):
        expected = leaves if name in _LEAVES else leaves - 1
        if len(found[name]) != expected and not (leaves == 1 and name == "leaf_weight"):
            raise DataError(f"{name} has {len(found[name])} values for {leaves} leaves")
    if any(int(feature) not in range(width) for feature in found["split_feature"]):
        raise DataError(f"split_feature names others than the {width} numbers")
    if any(int(decision) not in _DECISIONS for decision in found["decision_type"]):
        raise DataError("decision_type is no comparison with a threshold")
    sides = [[int(child) for child in found[side]] for side in ("left_child", "right_child")]
    children = sorted(child for side in sides for child in side)
    if leaves > 1 and children != [*range(-leaves, 0), *range(1, leaves - 1)]:
        raise DataError("a node or a leaf hangs in several places, or in none")
    if any(0 < child <= node for side in sides for node, child in enumerate(side)):
        raise DataError("a node hangs below itself")
