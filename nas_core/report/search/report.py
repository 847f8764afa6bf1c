"""The page of a search, and the tables beside it."""

from __future__ import annotations

from pathlib import Path

from nas_core.files import write_atomic
from nas_core.report import plots
from nas_core.report.page import interactive
from nas_core.report.page.html import Page
from nas_core.report.search.evaluations import write_evaluations
from nas_core.report.search.facts import facts_of, fingerprints_of
from nas_core.report.search.genes import fixed_genes, searched_genes, told_apart
from nas_core.report.search.given import add_given
from nas_core.report.search.limits import limit_notes
from nas_core.report.search.pictures import add_figures
from nas_core.report.search.points import points_of
from nas_core.report.search.progress import RELOAD_S, following, progress_of
from nas_core.report.search.run import SearchRun, finalists_table, read_run
from nas_core.report.tables import describe
from nas_core.space import Architecture

__all__ = ["write_report"]


def write_report(folder: str | Path, train_log: str | Path | None = None, reload_s: float = RELOAD_S) -> Path:
    """Write ``report.html``, ``evaluations.csv``, ``evaluations.jsonl``, a picture of each front and, for a finished
    search, ``finalists.csv`` into a run folder; returns the page's path.

    Args:
        folder: of a search.
        train_log: log of the supernet's training; default: what lies beside its checkpoint.
        reload_s: seconds after which the page of a running search is loaded again.

    Raises:
        DataError: see :func:`read_run`; a log that cannot be read. SpaceError, ArchitectureError: evaluations of
            another space.
    """
    run = read_run(folder)
    space = (run.settings.get("space") or {}).get("name", "unknown")
    page = Page(f"Architecture search: {run.name}", f"Search space {space}, {len(run.evaluations)} evaluations.")
    progress = progress_of(run)
    if follow := following(progress, reload_s):
        page.following(follow)
    page.facts(facts_of(run))
    if fingerprints := fingerprints_of(run):
        page.details("Fingerprints, versions and other settings", fingerprints)
    add_figures(page, run, points_of([run]))
    add_given(page, run)
    _add_training(page, run, None if train_log is None else Path(train_log))
    page.heading("Finalists")
    if run.finalists:
        _add_finalists(page, run)
        write_atomic(run.folder / "finalists.csv", finalists_table(run, genes=True).csv())
    else:
        more = " Start it again to continue it." if progress.state == "stopped" else ""
        page.paragraph(f"The search has not ended; finalists are chosen at its end.{more}")
    write_evaluations(run)
    path = run.folder / "report.html"
    page.save(path)
    return path


def _add_finalists(page: Page, run: SearchRun) -> None:
    """The table, and what sets them apart; genes that no network of the space could choose are said once."""
    table = finalists_table(run)
    genes = {finalist["key"]: finalist["genes"] for finalist in run.finalists}
    page.table(table)
    for note in limit_notes(run):
        page.paragraph(note)
    page.facts(told_apart({row["architecture"]: genes[row["architecture"]] for row in table.rows}, searched_genes(run)))
    if fixed := fixed_genes(run):
        page.details("Fixed by the search space", {"all networks": describe(Architecture(fixed))})


def _add_training(page: Page, run: SearchRun, log: Path | None) -> None:
    checkpoint = Path(str(run.notes.get("checkpoint") or ""))
    if log is None and not checkpoint.is_file():
        return
    from nas_core.supernet.curves import read_curves  # torch, and whatever the hosts import

    found = read_curves(checkpoint, log)
    if found is None:
        return
    page.heading("Training of the supernet")
    for title, series in found.panels.items():
        page.plot(
            interactive.curves(series, found.over, title),
            f"{title} over the {found.over} of the supernet's training",
            f"From {found.source}.",
            plots.curves(series, found.over, title),
        )
