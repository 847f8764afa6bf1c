"""What a study leaves in its folder: a page, a picture, and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nas_core import __version__
from nas_core.files import make_folder, real_path, write_atomic, write_json
from nas_core.report import Column, Page, Table
from nas_core.report.plots import bars, lines, pairs, squares
from nas_core.studies import Bars, Lines, Measure, Squares, Study, StudyResult, Subject
from nas_core.studies.base import Picture


def table_of(columns: Sequence[Measure], rows: Sequence[Mapping[str, Any]]) -> Table:
    """The rows under those columns that have a value in one of them."""
    shown = [column for column in columns if any(row.get(column.key) is not None for row in rows)]
    return Table([Column(*column) for column in shown], rows)


def write_study(
    study: Study, subjects: Sequence[Subject], settings: Mapping[str, Any], config: Any, result: StudyResult, out: Path
) -> list[Path]:
    """Write ``NAME.json``, ``NAME.png`` and ``NAME.html`` into a folder; their paths.

    Args:
        settings: how the supernets were opened.
    """
    make_folder(out)
    data, picture, page = (out / f"{study.name}.{suffix}" for suffix in ("json", "png", "html"))
    write_json(
        data,
        {
            "study": study.name,
            "nas_ext": __version__,
            "checkpoints": {subject.name: str(real_path(subject.path)) for subject in subjects},
            "space": subjects[0].supernet.space.name,
            "opened": dict(settings),
            "settings": asdict(config),
            "summary": list(result.summary),
            "rows": list(result.rows),
            "notes": list(result.notes),
            **result.details,
        },
    )
    drawn = _drawn(result.picture)
    write_atomic(picture, drawn)
    shown = Page(f"Study {study.name}", study.purpose)
    shown.heading("Figures")
    shown.table(table_of(result.summary_columns, result.summary))
    shown.image(drawn, f"picture of the study {study.name}")
    for note in result.notes:
        shown.paragraph(note)
    shown.heading("Measurements")
    shown.table(table_of(result.columns, result.rows))
    shown.details("Settings", {**settings, **asdict(config)})
    shown.save(page)
    return [page, picture, data]


def _drawn(picture: Picture) -> bytes:
    if isinstance(picture, Bars):
        return bars(picture.series, picture.label)
    if isinstance(picture, Squares):
        return squares(picture.names, picture.panels, picture.label)
    if isinstance(picture, Lines):
        return lines(picture.panels, picture.levels, picture.x_label, picture.y_label, picture.level_label)
    return pairs(picture.series, picture.x_label, picture.y_label, picture.equal)
