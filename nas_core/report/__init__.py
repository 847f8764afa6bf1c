"""Reports: tables, plots and HTML pages."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.report.comparison import write_comparison
    from nas_core.report.page import Page
    from nas_core.report.search_page import write_report

__all__ = [
    "Page",
    "write_comparison",
    "write_report",
]

__getattr__, __dir__ = lazy_names(__name__)
