"""How far a search is: whether it runs, how many evaluations it has made of how many, how long the rest may take."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from nas_core.locks import held
from nas_core.progress import duration
from nas_core.report.page.html import Following
from nas_core.report.search.run import SearchRun
from nas_core.search.log import read_log

__all__ = ["LONGEST_S", "RELOAD_S", "RunProgress", "following", "progress_of"]

RELOAD_S = 10.0
"""Seconds after which a page of a running search is loaded again, where nobody says another number."""
LONGEST_S = 86_400
"""More seconds are refused: browsers take those beyond 24 days for none, and would load the page without end."""
_PATIENCE_S, _PATIENCE = 60.0, 5
"""A search that tells nothing for so many seconds, and for so many times as long as an evaluation takes, looks dead."""


@dataclass(frozen=True)
class RunProgress:
    """What a run folder tells of its search at this moment."""

    state: Literal["running", "stopped", "ended", "unknown"]
    """``stopped``: no process runs it, and it has not come to its end. ``unknown``: another program or another machine
    may be running it."""
    evaluations: int
    most: int | None
    """Evaluations at the end, or fewer; None where nothing tells it."""
    last: datetime
    """When the last evaluation was written."""
    each_s: float | None
    """Seconds from one evaluation to the next in this run."""

    @property
    def left_s(self) -> float | None:
        """Seconds until the end, at most; None where nothing tells it."""
        if self.most is None or self.each_s is None:
            return None
        return max(0, self.most - self.evaluations) * self.each_s

    @property
    def patience_s(self) -> float:
        """Seconds without an evaluation after which the search looks dead."""
        return max(_PATIENCE_S, _PATIENCE * (self.each_s or 0.0))

    @property
    def counted(self) -> str:
        return f"{self.evaluations} evaluations" if self.most is None else f"{self.evaluations} of at most {self.most}"


def progress_of(run: SearchRun) -> RunProgress:
    """What the lock, the log and the journal of a run folder tell."""
    count = len(run.evaluations)
    last = datetime.fromtimestamp((run.folder / "journal.jsonl").stat().st_mtime, UTC)
    log = read_log(run.folder / "search.log")
    each: float | None = None
    most: int | None = None
    if log is not None:
        now, most = count - log.before, max(log.total, count)
        each = (last - log.began).total_seconds() / now if now > 0 and last > log.began else None
    elif run.sessions:
        each = sum(session["seconds"] for session in run.sessions) / count
    progress = RunProgress(_state(run), count, most, last, each)
    if progress.state == "unknown" and (datetime.now(UTC) - last).total_seconds() > progress.patience_s:
        return RunProgress("ended" if run.finalists else "stopped", count, most, last, each)
    return progress


def _state(run: SearchRun) -> Literal["running", "stopped", "ended", "unknown"]:
    if run.notes.get("engine"):  # another program drives it, and writes the finalists so far after each evaluation
        return "unknown"
    if run.finalists:
        return "ended"
    searching = held(run.folder / "journal.lock")
    if searching is None:
        return "unknown"
    return "running" if searching else "stopped"


def following(progress: RunProgress, every_s: float = RELOAD_S) -> Following | None:
    """What a page says about a search that has not ended; None of one that has."""
    if progress.state == "ended":
        return None
    counted, left = progress.counted, progress.left_s
    if progress.state == "stopped":
        head = f"Not running: the search stopped after {counted} evaluations. The same command continues it."
        if progress.most is None:
            head = f"Not running: {counted} were made. The search has not come to its end."
    elif progress.state == "running":
        rest = f", at most about {duration(left)} left" if left is not None and left > 0 else ""
        head = f"Running: {counted}{'' if progress.most is None else ' evaluations'}{rest}."
    else:
        head = f"{counted[0].upper()}{counted[1:]} so far; whether more come cannot be said from here."
    return Following(
        head=head,
        late=f"No news: the search may have ended or stopped, or nobody writes this page anew. It had {counted}.",
        alive=progress.state != "stopped",
        last=progress.last,
        patience_s=max(progress.patience_s, 3 * every_s),
        every_s=every_s,
        done=progress.evaluations,
        total=progress.most,
    )
