"""Finalists held against their limits: a predicted latency is within one, the measured one may not be."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nas_core.search.finalists import Finalist, with_measured
from nas_core.search.strategies.base import Strategy
from nas_core.space import Architecture

if TYPE_CHECKING:
    from nas_core.search.engine import SearchResult

_log = logging.getLogger(__name__)

TRIES = 4
"""Architectures measured in vain for a limit, beside the first finalists, before no further one is."""

Measure = Callable[[Sequence[Architecture]], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Goal:
    """What one search minimises, and its limits."""

    metric: str
    limits: Mapping[str, float]
    """Limited metric -> largest value allowed."""

    def allows(self, metrics: Mapping[str, float]) -> bool:
        """Whether an architecture with these metrics, evaluated or predicted, is a candidate."""
        known = self.metric in metrics and all(name in metrics for name in self.limits)
        return known and all(metrics[name] <= limit for name, limit in self.limits.items())

    def missed(self, finalist: Finalist) -> list[str]:
        """The limits that it was measured above, on the machine that they hold for."""
        measured = finalist.measured if finalist.measured.get("same_machine") else {}
        return [name for name, limit in self.limits.items() if name in measured and measured[name] > limit]


def goals(strategies: Mapping[str, Strategy]) -> dict[str, Goal]:
    """Search -> its goal."""
    return {
        name: Goal(strategy.metric, {one.name: float(one.limit) for one in strategy.proposals.constraints})
        for name, strategy in strategies.items()
    }


def judged(finalists: Sequence[Finalist], searches: Mapping[str, Goal]) -> list[Finalist]:
    """The finalists, where the best of a search is one that was not measured above its limits. Those before it in the
    order of the metric name the search in ``over_limit`` instead; where all are above, no one is the best of it."""
    found = list(finalists)
    for name, goal in searches.items():

        def order(place: int, name: str = name, goal: Goal = goal) -> tuple[float, bool]:
            one = found[place]
            return one.metrics[goal.metric], name not in (*one.best_of, *one.over_limit)

        places = sorted((place for place, one in enumerate(found) if goal.allows(one.metrics)), key=order)
        missed = [place for place in places if goal.missed(found[place])]
        if not places or places[0] not in missed:
            continue
        winner = next((place for place in places if place not in missed), None)
        before = places if winner is None else places[: places.index(winner)]
        for place, one in enumerate(found):
            best = [other for other in one.best_of if other != name] + [name] * (place == winner)
            above = [other for other in one.over_limit if other != name] + [name] * (place in before)
            found[place] = replace(one, best_of=tuple(best), over_limit=tuple(above))
    return found


def measure_finalists(result: SearchResult, searches: Mapping[str, Goal], measure: Measure) -> list[Finalist]:
    """Measure the finalists that were not measured yet. Where the best of a search is above a limit, the next best ones
    are measured too and become finalists, until one is within it.

    The next one is the best of those whose prediction stays below the limit even if it is wrong by as much as the ones
    before were. At most :data:`TRIES` beside the first finalists are found above a limit; where all finalists were
    measured before, nothing is.
    """
    missing = [finalist.architecture for finalist in result.finalists if not finalist.measured]
    records = dict(zip(missing, measure(missing) if missing else (), strict=True))
    known = [records.get(finalist.architecture, finalist.measured) for finalist in result.finalists]
    found, evaluated = judged(with_measured(result.finalists, known), searches), result.evaluated
    if not missing:  # as an earlier end of the search left them
        return found
    for name, goal in searches.items():
        first = sum(name in one.over_limit for one in found)
        while (above := [one for one in found if name in one.over_limit]) and len(above) - first < TRIES:
            following = _next(found, above, evaluated, name, goal)
            if following is None:
                break
            _log.info("%s: %s was measured above, %s is measured next", name, above[-1].architecture.key, following.key)
            (record,) = measure([following])
            if not record:
                break
            found = judged([*found, Finalist(following, dict(evaluated[following]), (), record)], searches)
    return found


def _next(
    found: Sequence[Finalist],
    above: Sequence[Finalist],
    evaluated: Mapping[Architecture, Mapping[str, float]],
    name: str,
    goal: Goal,
) -> Architecture | None:
    """The best architecture not measured yet that is likely within the limits, and better than the best that is."""
    bounds = dict(goal.limits)
    for one in above:
        for metric in goal.missed(one):
            limit, off = goal.limits[metric], one.metrics[metric] / one.measured[metric]
            bounds[metric] = min(bounds[metric], limit * off)
    tighter, known = Goal(goal.metric, bounds), {one.architecture for one in found}
    best = min((one.metrics[goal.metric] for one in found if name in one.best_of), default=float("inf"))
    left = [
        (metrics[goal.metric], place, architecture)
        for place, (architecture, metrics) in enumerate(evaluated.items())
        if architecture not in known and tighter.allows(metrics) and metrics[goal.metric] < best
    ]
    return min(left, key=lambda one: one[:2])[2] if left else None
