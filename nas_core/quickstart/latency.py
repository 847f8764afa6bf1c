"""The quickstart of latency: a model of this machine, and milliseconds of an ONNX file that it has not measured."""

from __future__ import annotations

from collections.abc import Mapping

from nas_core.quickstart.kind import Quickstart


class LatencyQuickstart(Quickstart):
    """Everything is measured where it runs, so that it brings no data."""

    name = "latency"
    purpose = "predict how long an ONNX file takes, with a model of networks measured on your machine"
    templates = "nas_core/quickstart/templates/latency"
    script = "run.sh"
    modules = ("onnx", "onnxruntime", "onnxscript")
    extra = "onnx"
    minutes = 1.0

    def data(self) -> Mapping[str, str | bytes]:
        return {}


LATENCY = LatencyQuickstart()
