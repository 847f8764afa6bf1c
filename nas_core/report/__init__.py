"""What a person looks at: tables, plots, and pages that hold both."""

from nas_core.report.architecture import architecture_picture, layers_table
from nas_core.report.page.html import Following, Page
from nas_core.report.plots import Mark
from nas_core.report.points import Field, Points, Row
from nas_core.report.search.comparison import comparison_table, write_comparison
from nas_core.report.search.limits import limit_notes
from nas_core.report.search.report import write_report
from nas_core.report.search.run import SearchRun, finalists_table, read_run
from nas_core.report.search.watch import watch_report
from nas_core.report.tables import Column, Table, describe

__all__ = [
    "Column",
    "Field",
    "Following",
    "Mark",
    "Page",
    "Points",
    "Row",
    "SearchRun",
    "Table",
    "architecture_picture",
    "comparison_table",
    "describe",
    "finalists_table",
    "layers_table",
    "limit_notes",
    "read_run",
    "watch_report",
    "write_comparison",
    "write_report",
]
