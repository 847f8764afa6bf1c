"""Labels, units and directions of common metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Metric:
    """Metric with display settings."""

    name: str
    label: str
    """Displayed name, without the unit."""
    unit: str = ""
    """Empty if there is none or it is unknown."""
    larger_is_better: bool | None = None
    """None if unknown."""
    spec: str = ".4g"
    """Number format in tables."""

    @property
    def title(self) -> str:
        """Label with unit, such as ``predicted latency (ms)``."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


_KNOWN = {
    metric.name: metric
    for metric in (
        Metric("latency_ms", "predicted latency", "ms", False, ".2f"),
        Metric("params_m", "parameters", "M", False, ".3f"),
        Metric("flops_g", "FLOPs", "G", False, ".3f"),
        Metric("memory_mb", "memory", "MB", False, ".2f"),
        Metric("cache_mb", "decoding cache", "MB", False, ".2f"),
        Metric("loss", "loss", "", False, ".4f"),
        Metric("nll_loss", "NLL", "", False, ".4f"),
        Metric("ppl", "perplexity", "", False, ".2f"),
        Metric("top1", "top-1", "%", True, ".2f"),
        Metric("top5", "top-5", "%", True, ".2f"),
        Metric("accuracy", "accuracy", "", True),
        Metric("acc", "accuracy", "", True),
        Metric("default", "trial metric"),
        Metric("bleu", "BLEU", "", True, ".2f"),
    )
}


def metric_named(name: str, units: Mapping[str, str] | None = None) -> Metric:
    """Return the label, unit and direction of a metric; ``units`` replace its unit."""
    metric = _KNOWN.get(name) or Metric(name, name, larger_is_better=False if name.endswith("_loss") else None)
    unit = (units or {}).get(name)
    return replace(metric, unit=str(unit)) if unit else metric
