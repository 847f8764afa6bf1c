"""The page of a search, and the tables beside it."""

from __future__ import annotations

from pathlib import Path

from nas_core.files import write_atomic
from nas_core.report.evaluations import write_evaluations
from nas_core.report.html import Page
from nas_core.report.limits import limit_notes
from nas_core.report.pictures import add_pictures
from nas_core.report.run import finalists_table, limit_label, read_run
from nas_core.report.tables import describe
from nas_core.space import Architecture

__all__ = ["write_report"]


def write_report(folder: str | Path) -> Path:
    """Write ``report.html``, ``evaluations.csv``, ``evaluations.jsonl`` and, for a finished search, ``finalists.csv``
    into a run folder; returns the page's path.

    Raises:
        DataError: see :func:`read_run`. SpaceError, ArchitectureError: evaluations of another space.
    """
    run = read_run(folder)
    failed = sum(e["metrics"].get(run.metric) is None for e in run.evaluations)
    space = (run.settings.get("space") or {}).get("name", "unknown")
    page = Page("Architecture search", f"Search space {space}, run folder {run.folder.name}.")
    page.facts(
        {
            "evaluations": f"{len(run.evaluations)} ({failed} failed)" if failed else len(run.evaluations),
            "searches": ", ".join(map(limit_label, run.history())),
            **({"by": ", ".join(run.strategies())} if run.strategies() else {}),
            **{name: value for name, value in run.settings.items() if isinstance(value, str | int)},
        }
    )
    add_pictures(page, run)
    page.heading("Finalists")
    if run.finalists:
        page.table(finalists_table(run))
        for note in limit_notes(run):
            page.paragraph(note)
        page.facts({f["key"]: describe(Architecture(f["genes"])) for f in run.finalists})
        write_atomic(run.folder / "finalists.csv", finalists_table(run, genes=True).csv())
    else:
        page.paragraph("The search has not ended; finalists are chosen at its end. Start it again to continue it.")
    write_evaluations(run)
    path = run.folder / "report.html"
    page.save(path)
    return path
