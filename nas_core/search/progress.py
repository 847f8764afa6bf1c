"""Progress of a search."""

from __future__ import annotations

from typing import Any

from tqdm import tqdm

from nas_core.progress import SlowWork


class Progress:
    """Progress of a search on standard error: a bar on a terminal, lines like :class:`SlowWork` elsewhere.

    Args:
        total: largest number of evaluations.
        show: False prints nothing.
    """

    def __init__(self, total: int, show: bool) -> None:
        self._bar: tqdm[Any] = tqdm(total=total, desc="search", disable=None if show else True, dynamic_ncols=True)
        self._lines = show and self._bar.disable
        self._work: SlowWork | None = None
        self._total, self._results, self._evaluated, self._note = total, 0, 0, " evaluations"

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def searching(self, name: str) -> None:
        self._bar.set_description(name)

    def start_clock(self) -> None:
        """Start the clock at the first call, after the results of earlier sessions."""
        self._work = self._work or SlowWork("search")

    def evaluated(self) -> None:
        self._evaluated += 1

    def advance(self) -> None:
        """Count a result, evaluated now or known before."""
        self._results += 1
        self._bar.update()
        if self._work is not None and self._lines:
            self._work.total = self._total - (self._results - self._evaluated)
            self._work.advance(self._evaluated, self._note)

    def best(self, metric: str, value: float) -> None:
        text = f"best {metric} {value:.4g}"
        self._note = f" evaluations, {text},"
        self._bar.set_postfix_str(text, refresh=False)

    def drop(self, count: int) -> None:
        """Reduce the total by evaluations that were not needed."""
        self._total -= count
        self._bar.total = self._total
        self._bar.refresh()
