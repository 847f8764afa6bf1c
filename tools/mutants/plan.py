"""A file's mutants: each with what it changes, and which of them are tried."""

from __future__ import annotations

import contextlib
import difflib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nas_core.optional import require

__all__ = ["Mutant", "drawn", "mutants_of"]


@dataclass(frozen=True)
class Mutant:
    """One small fault, known by what it changes: the numbers that mutmut gives move with every edit of a function."""

    name: str
    """What mutmut calls it."""
    function: str
    """The function or method, as ``Journal.replay``."""
    before: str
    """The lines that it replaces, without indentation."""
    after: str
    """The lines that it puts there."""


def mutants_of(folder: Path, file: str) -> list[Mutant]:
    """All mutants of ``file``, a path in ``folder``; what mutmut is to leave out stands in the configuration there."""
    feature = "looking for tests that notice nothing (make mutants)"
    configuration = require("mutmut.configuration", feature, extra="mutants")
    names = require("mutmut.utils.format_utils", feature, extra="mutants")
    mutation = require("mutmut.mutation.file_mutation", feature, extra="mutants")
    with contextlib.chdir(folder):
        configuration.reset_config()
        made = mutation.mutate_file_contents(file, Path(file).read_text(encoding="utf-8"))
    lines = made.code.splitlines()

    def source(name: str, function: str) -> list[str]:
        span = made.line_span_by_function_name[name]
        return [line.strip().replace(name, function) for line in lines[span.start - 1 : span.end]]

    found = []
    for name in made.mutant_names:
        function, owner = names.orig_function_and_class_names_from_key(name)
        before, after = _difference(source(f"{name.rpartition('_')[0]}_orig", function), source(name, function))
        whole = f"{owner}.{function}" if owner else function
        found.append(Mutant(names.get_mutant_name(Path(file), name), whole, before, after))
    return found


def drawn(mutants: Sequence[Mutant], most: int, seed: str) -> list[Mutant]:
    """All, or ``most`` of them, the same for the same mutants and seed; fewer are the first of more."""
    if len(mutants) <= most:
        return list(mutants)
    order = sorted(mutants, key=lambda mutant: mutant.name)
    random.Random(seed).shuffle(order)
    return order[:most]


def _difference(old: Sequence[str], new: Sequence[str]) -> tuple[str, str]:
    before, after = [], []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            before += old[a:b]
            after += new[c:d]
    return "\n".join(before), "\n".join(after)
