"""Values of ``--space`` for trained networks: ``auto``, ``auto:GENE,GENE``, ``attention``, or an existing space."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from nas_core.errors import ConfigError, SpaceError, check_choice, unknown_choice
from nas_core.layers.attention.kinds import ATTENTION_KINDS
from nas_core.space import Choice, SearchSpace, get_space
from nas_core.supernet.elastic.kinds import attention_choices

AUTO, ATTENTION = "auto", "attention"


def is_auto(space: str) -> bool:
    return space == ATTENTION or space.partition(":")[0] == AUTO


_IMPLIED = ("attention", "head_dim")
"""Genes that a space may lack, if all of its networks have softmax attention, or heads of one size."""


def space_for(
    space: str | SearchSpace, trained: Mapping[str, Any], make_space: Callable[[], SearchSpace]
) -> SearchSpace:
    """Return a space whose largest network is the trained one.

    Args:
        space: a space, its name or file, or a value for :func:`resolve`.
        trained: genes of the trained network, whose attention is softmax.
        make_space: function that builds the space of ``auto``.
    """
    if isinstance(space, str) and is_auto(space):
        return resolve(space, make_space)
    space = get_space(space) if isinstance(space, str) else space
    largest = dict(space.largest())
    kinds = dict.fromkeys((gene for gene in largest if gene.endswith("attention")), "softmax")
    for gene, expected in {**trained, **kinds}.items():
        option = largest.get(gene, expected if gene in _IMPLIED else None)
        if _layer_value(option) != _layer_value(expected):
            raise SpaceError(
                f"the largest network of space {space.name!r} has {gene} {option}, but the trained network has"
                f" {expected}; give a space whose largest network is the trained one, or auto"
            )
    return space


def _layer_value(gene: Any) -> Any:
    return gene[0] if isinstance(gene, tuple) and len(set(gene)) == 1 else gene


def resolve(space: str, make_space: Callable[[], SearchSpace]) -> SearchSpace:
    """Return the space that a value of ``--space`` names.

    Args:
        space: ``auto``, ``auto:GENE,GENE`` (choices of these genes and of attention) or ``attention``.
        make_space: function that builds the space of ``auto``.
    """
    if space == ATTENTION:
        return attention_only(make_space())
    if ":" not in space:
        return make_space()
    names = space.partition(":")[2]
    genes = [name.strip() for name in names.split(",") if name.strip()]
    if not genes:
        raise ConfigError(f"--space {space} has no genes; give names, e.g. auto:layers,ffn_dim, or auto for all genes")
    return varying(make_space(), genes)


def varying(space: SearchSpace, genes: Sequence[str]) -> SearchSpace:
    """Return a space with choices only for some genes and attention. Other genes are those of the largest network.

    Args:
        genes: names of genes, or their last parts: ``layers`` matches all sides.
    """
    several = [choice.name for choice in space.choices if any(len(row) > 1 for row in choice.options)]
    endings = list(dict.fromkeys(name.rpartition(".")[2] for name in several))
    for gene in genes:
        if gene not in endings and gene not in several:
            raise unknown_choice("size of --space auto", gene, endings)
    searched = {name for name in several if name in genes or name.rpartition(".")[2] in genes}
    kinds = {choice.name for choice in attention_choices(space)}
    return _with_choices(space, searched | kinds, "-".join([space.name, *genes]))


def attention_only(space: SearchSpace) -> SearchSpace:
    kinds = {choice.name for choice in attention_choices(space)}
    if not kinds:
        raise ConfigError(
            f"space {space.name!r} has no choice of attention; give several kinds, e.g. --attention softmax,linear"
        )
    return _with_choices(space, kinds, f"{space.name}-attention")


def _with_choices(space: SearchSpace, searched: Collection[str], name: str) -> SearchSpace:
    largest = space.largest()
    choices = []
    for choice in space.choices:
        if choice.name in searched:
            choices.append(choice)
            continue
        gene = largest[choice.name]
        rows = tuple((value,) for value in gene) if isinstance(gene, tuple) else ((gene,),)
        choices.append(Choice(choice.name, rows, choice.per, choice.codes, choice.scale))
    return SearchSpace(name, choices, space.fixed)


def check_kinds(kinds: Sequence[str], space: str = AUTO) -> None:
    for kind in kinds:
        check_choice("kind of attention (--attention)", kind, ATTENTION_KINDS.names())
    if space == ATTENTION and len(set(kinds)) < 2:
        raise ConfigError(
            f"--space {ATTENTION} needs several kinds of attention, got {', '.join(kinds) or 'none'}; give --attention,"
            " e.g. softmax,linear"
        )
    if not is_auto(space) and len(set(kinds)) > 1:
        raise ConfigError(
            f"--attention {','.join(kinds)} is not supported with --space {space}; choose attention in that space"
        )
