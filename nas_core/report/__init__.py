"""Tables, plots and HTML pages."""

from nas_core.report.architecture import architecture_picture, layers_table
from nas_core.report.comparison import comparison_table, write_comparison
from nas_core.report.page import Field, Page, Points, Row
from nas_core.report.plots import Mark
from nas_core.report.run import SearchRun, finalists_table, limit_notes, read_run
from nas_core.report.search_page import watch_report, write_report
from nas_core.report.tables import Column, Table, describe

__all__ = [
    "Column",
    "Field",
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
