"""``nas-ext search --calibration``: the estimate as what is minimised, and which networks to train next."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nas_core.errors import ConfigError
from nas_core.files import read_jsonl, write_atomic
from nas_core.jobs import Failure
from nas_core.search.metrics import metric_named
from nas_core.space import Architecture, SearchSpace

if TYPE_CHECKING:
    from nas_core.search import SearchResult
    from nas_core.search.calibration import Calibration
    from nas_core.search.engine import EvaluateMany
    from nas_core.search.strategies import Strategy
    from nas_core.supernet.host import Supernet

__all__ = ["NEXT", "Calibrated", "open_calibrated", "written_next"]

NEXT = "train_next.jsonl"
"""Networks to train next, in the folder of a search."""


@dataclass(frozen=True)
class Calibrated:
    """A calibration with the further supernets that it reads."""

    calibration: Calibration
    further: Sequence[Supernet]

    @property
    def objective(self) -> str:
        """What is minimised."""
        from nas_core.search.calibration import objective_of

        return objective_of(self.calibration)

    def added(self, architecture: Architecture, found: Mapping[str, Any]) -> dict[str, Any]:
        """What the searched supernet says of an architecture, and the estimate with what belongs to it."""
        from nas_core.search.calibration import calibrated_metrics

        others = [supernet.evaluate(architecture) for supernet in self.further]
        return {**found, **calibrated_metrics(self.calibration, architecture, [found, *others])}

    def added_to_many(self, evaluate_many: EvaluateMany) -> EvaluateMany:
        """The same for what evaluates many elsewhere."""

        def many(architectures: Sequence[Architecture]) -> Iterator[Mapping[str, Any] | Failure]:
            for architecture, outcome in zip(architectures, evaluate_many(architectures), strict=True):
                yield outcome if isinstance(outcome, Failure) else self.added(architecture, outcome)

        return many


def _within_limits(
    evaluated: Mapping[Architecture, Mapping[str, float]], strategies: Iterable[Strategy]
) -> dict[Architecture, Mapping[str, float]]:
    """What lies within the limits of a search; architectures that a person gave may not."""
    some = list(evaluated)
    within = [each.proposals.feasible(each.space.rows(some)) for each in strategies] if some else []
    return {one: evaluated[one] for place, one in enumerate(some) if any(good[place] for good in within)}


def _filled(path: Path) -> dict[str, dict[str, Any]]:
    """Records that somebody wrote a result into, by their network."""
    records = read_jsonl(path) if path.exists() else []
    return {
        str(record.get("key")): record
        for record in records
        if isinstance(metrics := record.get("metrics"), dict) and any(value is not None for value in metrics.values())
    }


def open_calibrated(
    path: Path, checkpoint: Path, further: Sequence[Path], space: SearchSpace, options: Mapping[str, Any], here: bool
) -> Calibrated:
    """The calibration of a file, if it belongs to the supernets and to the data that they are evaluated on.

    Args:
        options: of :func:`nas_core.supernet.host.open_supernet`.
        here: whether this process evaluates.

    Raises:
        DataError: the file is missing or no calibration. ConfigError: it was made with other supernets or data, or
            several supernets are to be evaluated elsewhere.
    """
    from nas_core.search.calibration import load_calibration, require_made_with
    from nas_core.supernet.host import open_supernet

    calibration = load_calibration(path, space)
    require_made_with(calibration, path, [checkpoint, *further], options)
    if further and not here:
        raise ConfigError("several supernets are evaluated in one process; leave out --executor and further devices")
    return Calibrated(calibration, [open_supernet(each, **options) for each in further])


def written_next(
    calibration: Calibration,
    result: SearchResult,
    strategies: Iterable[Strategy],
    cost: str | None,
    on_paper: Callable[[Architecture], Mapping[str, float]],
    folder: Path,
    count: int,
) -> str:
    """Choose networks to train next and write them as ``nas-ext calibrate --trained`` reads them, but for the results,
    which are null; a table of them. Lines of an earlier search whose results were filled in stay."""
    from nas_core.report.tables import Column, Table
    from nas_core.search.calibration import calibrated_name, next_to_train, objective_of

    trained = {one: float(on_paper(one)[cost]) for one in calibration.trained} if cost else {}
    able = _within_limits(result.evaluated, strategies)
    chosen = next_to_train(calibration, able, cost, trained, count)
    if not chosen:
        return "to train next: none, all evaluated networks are trained"
    name, objective = calibrated_name(calibration), objective_of(calibration)
    known = {"test_set": said} if (said := calibration.info.get("test_set")) else {}
    filled = _filled(folder / NEXT)
    lines, rows = [json.dumps(record) + "\n" for record in filled.values()], []
    for one in chosen:
        shown = [key for key in one.metrics if key == cost or (key.startswith(name) and key != objective)]
        expected = {key: one.metrics[key] for key in (*shown, *([name] if name not in shown else []))}
        genes, key = one.architecture.to_dict(), one.architecture.key
        record = {"key": key, "metrics": {calibration.metric: None}, **known, "genes": genes, "expected": expected}
        lines += [] if key in filled else [json.dumps(record) + "\n"]
        rows.append({"key": key, **expected})
    write_atomic(folder / NEXT, "".join(lines))
    columns = [Column("key", "train next"), Column(name, f"estimated {name.removeprefix('calibrated_')}", ".4g")]
    if calibration.fitted:
        columns.append(Column(f"{name}_spread", "give or take", ".2g"))
    if cost:
        columns.append(Column(cost, metric_named(cost).title, metric_named(cost).spec))
    return f"{Table(columns, rows).text()}\nto train next, their results to be filled in: {folder / NEXT}"
