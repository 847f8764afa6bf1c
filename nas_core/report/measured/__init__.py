"""Pages about what was measured and what models predict of it: latency data sets and predictors."""

from nas_core.report.measured.collection import Collection, MeasuredNetwork
from nas_core.report.measured.judged_records import JudgedRecords, judged_records
from nas_core.report.measured.latency_page import write_latency_report
from nas_core.report.measured.predictor_page import write_predictor_report
from nas_core.report.measured.reading import read_collection

__all__ = [
    "Collection",
    "JudgedRecords",
    "MeasuredNetwork",
    "judged_records",
    "read_collection",
    "write_latency_report",
    "write_predictor_report",
]
