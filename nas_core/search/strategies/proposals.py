"""Random sampling of new architectures within the limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nas_core.progress import SlowWork
from nas_core.search.constraints import Constraint, InfeasibleError, Limits, constraints_of, violation
from nas_core.space import SearchSpace
from nas_core.space.slots import Rows

BATCH = 1024
"""Number of architectures drawn at once; constant, so that results do not depend on the requested number."""

MAX_TRIES = 20_000
"""Largest number of rows drawn per request, rounded up to :data:`BATCH`."""

SLOW_TRIES, SLOW_TRIES_EACH = 200, 10
"""Largest number of predictions of a slow constraint per request, and additional ones per requested row."""

ENUMERATED = 20_000
"""Largest number of architectures of a space that is enumerated."""

CLOSEST = 32
"""Number of rows closest to the limits kept as parents."""


def row_keys(rows: Rows) -> list[bytes]:
    data, width = np.ascontiguousarray(rows, np.int16).tobytes(), rows.shape[1] * 2
    return [data[start : start + width] for start in range(0, len(data), width)]


class Proposals:
    """Sampler of different architectures within the limits."""

    def __init__(self, space: SearchSpace, constraints: Limits) -> None:
        self.space = space
        self.constraints = constraints_of(space, constraints)
        self.tried = 0
        self.accepted = 0
        self._bounds = {constraint.name: np.inf for constraint in self.constraints}
        self._closest = space.slots.empty()
        self._closest_violation = np.zeros(0)

    @cached_property
    def enumerated(self) -> Rows:
        """All architectures of the space that meet the fast limits; empty for a large space."""
        slots = self.space.slots
        total = math.prod(slots.sizes.tolist())
        if total > ENUMERATED:
            return slots.empty()
        rows = np.stack(np.unravel_index(np.arange(total), slots.sizes), 1).astype(np.int16)
        rows = np.unique(slots.canonical(rows), axis=0)
        return rows[self.feasible(rows, [limit for limit in self.constraints if not limit.batch_size])]

    def feasible(self, rows: Rows, constraints: Sequence[Constraint] | None = None) -> NDArray[np.bool_]:
        """Return a mask ``(n,)`` of the rows that meet all limits, or those given."""
        mask = np.ones(len(rows), np.bool_)
        for constraint in self.constraints if constraints is None else constraints:
            mask[mask] = constraint.values(rows[mask]) <= constraint.limit
        return mask

    def take(
        self,
        draw: Callable[[int], Rows],
        n: int,
        excluded: set[bytes],
        accept: Callable[[Rows], NDArray[np.bool_]] | None = None,
    ) -> Rows:
        """Return up to ``n`` different rows within the limits; fewer after :data:`MAX_TRIES` draws.

        Args:
            draw: function that returns a given number of rows.
            excluded: keys of rows; those of new rows are added.
            accept: replaces :meth:`feasible`.
        """
        accept = accept or self.feasible
        max_tries = SLOW_TRIES + SLOW_TRIES_EACH * n if any(c.batch_size for c in self.constraints) else math.inf
        limits = " and ".join(constraint.label for constraint in self.constraints)
        work, tried = SlowWork(f"searching for architectures{limits and ' with '}{limits}", n), 0
        seen = set(excluded)
        accepted: list[Rows] = []
        missing = n
        for _ in range(0, MAX_TRIES if n > 0 else 0, BATCH):
            rows = draw(BATCH)
            fresh = [index for index, key in enumerate(row_keys(rows)) if key not in seen and not seen.add(key)]  # type: ignore[func-returns-value]
            for chunk in self._chunks(rows[fresh], missing):
                if not missing or tried >= max_tries:
                    break
                mask = accept(chunk)
                tried += len(chunk)
                self.accepted += int(mask.sum())
                accepted.append(chunk[mask][:missing])
                missing -= len(accepted[-1])
                work.advance(n - missing, f" among {tried}")
            if not missing or tried >= max_tries:
                break
        self.tried += tried
        rows = np.concatenate(accepted) if accepted else self.space.slots.empty()
        excluded.update(row_keys(rows))
        return rows

    def _chunks(self, rows: Rows, count: int) -> Iterator[Rows]:
        slow = [constraint.batch_size for constraint in self.constraints if constraint.batch_size]
        step = min([*slow, count]) if slow else max(1, len(rows))
        return (rows[start : start + step] for start in range(0, len(rows), step))

    def initial(self, rng: np.random.Generator, n: int, excluded: set[bytes]) -> Rows:
        """Return up to ``n`` random rows within the limits; if too few are found, try mutants of these, or of the rows
        closest to the limits.

        Raises:
            InfeasibleError: no row within the limits is found.
        """
        self._closest, self._closest_violation = self.space.slots.empty(), np.zeros(0)
        self._update_closest(self.space.rows([self.space.smallest()]))
        population = self.take(lambda k: self.space.sample_rows(rng, k), n, excluded, self._update_closest)
        if len(population) < n:
            pool = [population]
            prob = 2.0 / self.space.slots.count

            def nearby(k: int) -> Rows:
                candidates = np.concatenate(pool)
                sources = candidates if len(candidates) else self._closest
                mutants = self.space.mutate_rows(sources[rng.integers(len(sources), size=k)], prob, rng)
                return np.concatenate([sources, mutants])

            def watch(rows: Rows) -> NDArray[np.bool_]:
                mask = self._update_closest(rows)
                pool.append(rows[mask])
                return mask

            extra = self.take(nearby, n - len(population), excluded, watch)
            population = np.concatenate([population, extra])
        if not len(population) and not excluded:
            raise self._infeasible()
        return population

    def _update_closest(self, rows: Rows) -> NDArray[np.bool_]:
        """Return a mask ``(n,)`` of rows within the limits; store the smallest values and the rows closest to the
        limits.
        """
        values = [constraint.values(rows) for constraint in self.constraints]
        mask = np.ones(len(rows), np.bool_)
        for constraint, value in zip(self.constraints, values, strict=True):
            self._bounds[constraint.name] = float(np.fmin.reduce(value, initial=self._bounds[constraint.name]))
            mask &= value <= constraint.limit
        outside = violation(self.constraints, values) if values else np.zeros(len(rows))
        closest, distance = np.concatenate([self._closest, rows]), np.concatenate([self._closest_violation, outside])
        order = np.argsort(distance, kind="stable")[:CLOSEST]
        self._closest, self._closest_violation = closest[order], distance[order]
        return mask

    def _infeasible(self) -> InfeasibleError:
        closest = self.space.architecture(self._closest[0])
        smallest = self.space.rows([self.space.smallest()])

        def numbers(rows: Rows) -> str:
            return ", ".join(f"{c.name} {float(c.values(rows)[0]):.4g}" for c in self.constraints)

        bounds = ", ".join(f"{name} {value:.4g}" for name, value in self._bounds.items())
        rate = self.accepted / max(self.tried, 1)
        error = InfeasibleError(
            f"no architecture of space {self.space.name!r} meets"
            f" {' and '.join(c.label for c in self.constraints)}:"
            f" {self.accepted} of {self.tried} tried (acceptance rate {rate:.2%}); lowest values reached: {bounds};"
            f" smallest network: {numbers(smallest)}; closest candidate: {numbers(self._closest[:1])} with"
            f" {', '.join(f'{name}={_short(gene)}' for name, gene in closest.items())};"
            " raise the limits to at least the values of the closest candidate, or use a space with smaller networks"
        )
        error.acceptance, error.bounds, error.closest = rate, dict(self._bounds), closest
        return error


def _short(gene: object) -> str:
    return "/".join(str(option) for option in gene) if isinstance(gene, tuple) else str(gene)
