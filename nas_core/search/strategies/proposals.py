"""Candidates that are new and feasible: capped rejection sampling on rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError
from nas_core.progress import SlowWork
from nas_core.search.constraints import InfeasibleError, Limits, constraints_of, violation
from nas_core.space import SearchSpace
from nas_core.space.slots import Rows

BATCH = 1024
"""Rows drawn at once. Constant, so that what is drawn depends on the seed and not on how much is needed."""

SLOW_TRIES, SLOW_TRIES_EACH = 200, 10
"""Rows that a slow constraint is asked for at most in one request, and further ones for each wanted architecture."""

NEAR = 32
"""How many of the closest candidates are kept to walk towards the feasible region."""


def row_keys(rows: Rows) -> list[bytes]:
    """Each row as bytes: equal exactly for equal architectures, as rows are canonical."""
    whole, width = np.ascontiguousarray(rows, np.int16).tobytes(), rows.shape[1] * 2
    return [whole[start : start + width] for start in range(0, len(whole), width)]


class Proposals:
    """Draws candidates until enough of them are distinct and feasible, or a cap is reached.

    Args:
        space: where candidates come from.
        constraints: what they must meet; none accepts everything.
        max_tries: rows drawn at most for one request (rounded up to whole batches); of a slow constraint fewer, see
            :data:`SLOW_TRIES`.
    """

    def __init__(self, space: SearchSpace, constraints: Limits, max_tries: int) -> None:
        if not isinstance(space, SearchSpace):
            raise ConfigError(f"the space is {space!r}; expected a SearchSpace, as get_space(name) gives it")
        self.space = space
        self.constraints = constraints_of(space, constraints)
        self.max_tries = max_tries
        self.tried = 0
        self.accepted = 0
        self._bounds = {constraint.name: np.inf for constraint in self.constraints}
        self._near = space.slots.empty()
        self._near_violation = np.zeros(0)

    def feasible(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows meet all limits ``(n,)``."""
        mask = np.ones(len(rows), np.bool_)
        for constraint in self.constraints:
            mask[mask] = constraint.values(rows[mask]) <= constraint.limit
        return mask

    def take(
        self,
        draw: Callable[[int], Rows],
        n: int,
        taken: set[bytes],
        accept: Callable[[Rows], NDArray[np.bool_]] | None = None,
    ) -> Rows:
        """Up to ``n`` feasible rows from ``draw``, distinct from one another and from ``taken`` (which grows by them).

        Fewer come back when ``max_tries`` rows did not hold more. ``accept`` replaces :meth:`feasible`.
        """
        accept = accept or self.feasible
        most = SLOW_TRIES + SLOW_TRIES_EACH * n if any(c.together for c in self.constraints) else math.inf
        limits = " and ".join(constraint.label for constraint in self.constraints)
        work, looked_at = SlowWork(f"looking for architectures{limits and ' within '}{limits}", n), 0
        seen = set(taken)
        found: list[Rows] = []
        missing = n
        for _ in range(0, self.max_tries if n > 0 else 0, BATCH):
            rows = draw(BATCH)
            fresh = [index for index, key in enumerate(row_keys(rows)) if key not in seen and not seen.add(key)]  # type: ignore[func-returns-value]
            for part in self._parts(rows[fresh], missing):
                good = accept(part)
                self.tried += len(part)
                looked_at += len(part)
                self.accepted += int(good.sum())
                found.append(part[good][:missing])
                missing -= len(found[-1])
                work.advance(n - missing, f" among {looked_at}")
                if not missing or looked_at >= most:
                    break
            if not missing or looked_at >= most:
                break
        chosen = np.concatenate(found) if found else self.space.slots.empty()
        taken.update(row_keys(chosen))
        return chosen

    def _parts(self, rows: Rows, wanted: int) -> Iterator[Rows]:
        """The rows, as many at a time as all constraints want; where one is slow, no more than are wanted."""
        slow = [constraint.together for constraint in self.constraints if constraint.together]
        step = min([*slow, wanted]) if slow else max(1, len(rows))
        return (rows[start : start + step] for start in range(0, len(rows), step))

    def initial(self, rng: np.random.Generator, n: int, taken: set[bytes]) -> Rows:
        """Up to ``n`` feasible rows, random as far as the cap allows.

        Each gene is drawn uniformly (HAT's way). When too few of these are feasible, the rest is reached by small
        mutations: of the feasible ones found, or, while there are none, of the candidates closest to the limits, the
        smallest network among them. So a limit that hardly any architecture meets still gives a population.

        Raises:
            InfeasibleError: nothing at all was found; it tells acceptance rate, bounds and closest candidate.
        """
        self._near, self._near_violation = self.space.slots.empty(), np.zeros(0)
        self._look_at(self.space.rows([self.space.smallest()]))
        found = self.take(lambda k: self.space.sample_rows(rng, k), n, taken, self._look_at)
        if len(found) < n:
            pool = [found]
            prob = 2.0 / self.space.slots.count

            def nearby(k: int) -> Rows:
                known = np.concatenate(pool)
                sources = known if len(known) else self._near
                mutants = self.space.mutate_rows(sources[rng.integers(len(sources), size=k)], prob, rng)
                return np.concatenate([sources, mutants])

            def watch(rows: Rows) -> NDArray[np.bool_]:
                good = self._look_at(rows)
                pool.append(rows[good])
                return good

            more = self.take(nearby, n - len(found), taken, watch)
            found = np.concatenate([found, more])
        if not len(found) and not taken:
            raise self._infeasible()
        return found

    def _look_at(self, rows: Rows) -> NDArray[np.bool_]:
        """Feasibility ``(n,)``, remembering bounds and the closest candidates on the way."""
        values = [constraint.values(rows) for constraint in self.constraints]
        good = np.ones(len(rows), np.bool_)
        for constraint, value in zip(self.constraints, values, strict=True):
            self._bounds[constraint.name] = float(np.fmin.reduce(value, initial=self._bounds[constraint.name]))
            good &= value <= constraint.limit
        outside = violation(self.constraints, values) if values else np.zeros(len(rows))
        near, distance = np.concatenate([self._near, rows]), np.concatenate([self._near_violation, outside])
        order = np.argsort(distance, kind="stable")[:NEAR]
        self._near, self._near_violation = near[order], distance[order]
        return good

    def _infeasible(self) -> InfeasibleError:
        closest = self.space.architecture(self._near[0])
        smallest = self.space.rows([self.space.smallest()])

        def numbers(rows: Rows) -> str:
            return ", ".join(f"{c.name} {float(c.values(rows)[0]):.4g}" for c in self.constraints)

        bounds = ", ".join(f"{name} {value:.4g}" for name, value in self._bounds.items())
        rate = self.accepted / max(self.tried, 1)
        error = InfeasibleError(
            f"no architecture of space {self.space.name!r} meets {' and '.join(c.label for c in self.constraints)}:"
            f" {self.accepted} of {self.tried} tried (acceptance rate {rate:.2%}); lowest values reached: {bounds};"
            f" smallest network: {numbers(smallest)}; closest candidate: {numbers(self._near[:1])} with"
            f" {', '.join(f'{name}={_short(gene)}' for name, gene in closest.items())};"
            " raise the limits to at least its values, or search a space with smaller networks"
        )
        error.acceptance, error.bounds, error.closest = rate, dict(self._bounds), closest
        return error


def _short(gene: object) -> str:
    return "/".join(str(option) for option in gene) if isinstance(gene, tuple) else str(gene)
