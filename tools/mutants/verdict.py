"""What survived against what is known to survive, and whether enough was caught."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError
from nas_core.files import read_yaml
from tools.mutants.plan import Mutant
from tools.mutants.tester import CAUGHT

__all__ = ["ACCEPTED", "Accepted", "Found", "judge", "read_accepted", "verdict"]

ACCEPTED = Path("tools/mutants/accepted.yaml")


@dataclass(frozen=True)
class Accepted:
    """A mutant that no test can, or needs to, notice."""

    file: str
    function: str
    before: str
    after: str
    reason: str

    def is_of(self, mutant: Mutant) -> bool:
        """Whether it names this mutant of its file."""
        return (self.function, self.before, self.after) == (mutant.function, mutant.before, mutant.after)

    def __str__(self) -> str:
        return f"{self.file}, {self.function}: {_change(self.before, self.after)}"


@dataclass(frozen=True)
class Found:
    """A file's mutants after they were tried."""

    file: str
    mutants: int
    """How many the file has; of many, some are tried."""
    tried: int
    caught: int
    """The tried ones that a test noticed; those of ``timeouts`` are among them."""
    timeouts: int
    accepted: int
    """Survivors whose reason stands in ``accepted.yaml``."""
    survivors: list[str]
    """The others, each with its function and what it changes."""
    outdated: list[str]
    """Entries of ``accepted.yaml`` that name no mutant of today, or one that was caught."""

    @property
    def share(self) -> float:
        """The caught among the tried; what is accepted counts as not caught."""
        return round(self.caught / self.tried, 4) if self.tried else 0.0

    def record(self) -> dict[str, Any]:
        """The entry of the summary."""
        names = ("mutants", "tried", "caught", "timeouts", "accepted", "share", "survivors")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        of_all = "" if self.tried == self.mutants else f", drawn from {self.mutants}"
        return (
            f"{self.file}: {self.caught} of {self.tried} caught ({100 * self.share:.1f} %{of_all}; {self.timeouts} by"
            f" time), {self.accepted} accepted, {len(self.survivors)} unexplained"
        )


def read_accepted(path: Path) -> list[Accepted]:
    """The entries of the list of accepted survivors.

    Raises:
        ConfigError: an entry lacks something, has something else, or stands there twice.
    """
    keys = ("file", "function", "before", "after", "reason")
    entries: list[Accepted] = []
    for number, entry in enumerate(read_yaml(path) or [], start=1):
        texts = isinstance(entry, dict) and all(isinstance(value, str) for value in entry.values())
        if not texts or set(entry) != set(keys):
            raise ConfigError(f"{path}, entry {number}: expected the texts {', '.join(keys)}, got {entry}")
        if not entry["reason"].strip():
            raise ConfigError(f"{path}, entry {number} gives no reason")
        values = {key: entry[key].rstrip("\n") for key in keys}
        if str(Accepted(**values)) in map(str, entries):
            raise ConfigError(f"{path}, entry {number} stands there twice: {Accepted(**values)}")
        entries.append(Accepted(**values))
    return entries


def judge(
    file: str,
    mutants: Sequence[Mutant],
    chosen: Sequence[Mutant],
    statuses: Mapping[str, str],
    accepted: Sequence[Accepted],
) -> Found:
    """Compare what became of the ``chosen`` mutants of a file with the entries that accept some of them."""
    entries = [entry for entry in accepted if entry.file == file]
    caught = [mutant for mutant in chosen if statuses[mutant.name] in CAUGHT]
    left = [mutant for mutant in chosen if statuses[mutant.name] not in CAUGHT]
    unknown = [mutant for mutant in left if not any(entry.is_of(mutant) for entry in entries)]
    outdated = []
    for entry in entries:
        named = [mutant for mutant in mutants if entry.is_of(mutant)]
        tried = [mutant for mutant in named if mutant in chosen]
        if not named or (tried and not any(mutant in left for mutant in tried)):
            outdated.append(str(entry))
    return Found(
        file=file,
        mutants=len(mutants),
        tried=len(chosen),
        caught=len(caught),
        timeouts=sum(statuses[mutant.name] == "timeout" for mutant in chosen),
        accepted=len(left) - len(unknown),
        survivors=[
            f"{mutant.function}: {_change(mutant.before, mutant.after)} ({statuses[mutant.name]})" for mutant in unknown
        ],
        outdated=outdated,
    )


def verdict(found: Sequence[Found], least: float) -> tuple[list[str], bool]:
    """What is to be told of all files, and whether enough was caught and every survivor is explained."""
    lines = [f"survived: {each.file}, {survivor}" for each in found for survivor in each.survivors]
    lines += [f"outdated: {ACCEPTED} accepts {entry}" for each in found for entry in each.outdated]
    caught, tried = sum(each.caught for each in found), sum(each.tried for each in found)
    share = caught / tried if tried else 0.0
    said = f"{caught} of {tried} mutants caught, {100 * share:.1f} %; expected at least {100 * least:g} %"
    return [*lines, said], not lines and share >= least


def _change(before: str, after: str) -> str:
    return f"{before or 'nothing'} -> {after or 'nothing'}".replace("\n", " | ")
