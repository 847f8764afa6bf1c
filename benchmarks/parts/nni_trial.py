"""NNI trial of ``benchmarks.search.nni_robustness``: reports the value of a formula."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import nni

from nas_core.space import get_space
from nas_core.space.labels import architecture_of

SPACE = get_space("hat_small")


def formula(parameters: Mapping[str, Any]) -> float:
    """Return a number with one optimum within ``hat_small``."""
    codes = SPACE.encode(architecture_of(SPACE, parameters), "layers")[0].astype(float)
    return round(float(sum((code - 0.3 - 0.6 * i / len(codes)) ** 2 for i, code in enumerate(codes))), 6)


if __name__ == "__main__":
    nni.report_final_result({"default": formula(nni.get_next_parameter())})
