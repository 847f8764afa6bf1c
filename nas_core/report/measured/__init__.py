"""Pages about measured latencies and about the predictions of models."""

from nas_core.report.measured.collection import Collection, MeasuredNetwork, read_collection
from nas_core.report.measured.evaluation import RecordEvaluation, judged_records
from nas_core.report.measured.latency_page import write_latency_report
from nas_core.report.measured.predictor_page import write_predictor_report

__all__ = [
    "Collection",
    "MeasuredNetwork",
    "RecordEvaluation",
    "judged_records",
    "read_collection",
    "write_latency_report",
    "write_predictor_report",
]
