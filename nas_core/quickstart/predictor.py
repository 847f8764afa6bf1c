"""The quickstart of accuracy predictors: cells that were trained, and a model that ranks those that were not."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from nas_core.quickstart.kind import Quickstart


class PredictorQuickstart(Quickstart):
    """Its cells and their accuracies come from ``tools/quickstart_cells.py``."""

    name = "predictor"
    purpose = "rank untrained networks by accuracy, learned from networks that were trained"
    templates = "nas_core/quickstart/templates/predictor"

    def data(self) -> Mapping[str, str | bytes]:
        cells = files("nas_core").joinpath("quickstart", "templates", "predictor", "cells.jsonl")
        return {"cells.jsonl": cells.read_bytes()}


PREDICTOR = PredictorQuickstart()
