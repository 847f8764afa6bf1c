"""Curves of image trainings: ``metrics.json`` of ``timm_ext.train``, or timm's ``summary.csv``."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas_core.errors import NasExtError
from nas_core.files.reading import read_json
from nas_core.supernet.curves import TrainingCurves

LOSS, TOP1 = "loss (nats)", "top-1 (%)"
_SUMMARY = {"train_loss": (LOSS, "training"), "eval_loss": (LOSS, "validation"), "eval_top1": (TOP1, "validation")}


def training_logs(checkpoint: Path) -> list[Path]:
    return [checkpoint.parent / "metrics.json", checkpoint.parent / "summary.csv"]


def training_curves(log: Path) -> TrainingCurves | None:
    """Read loss and top-1 over epochs, of training and of each validated subnet; None for unrelated files."""
    curves: dict[str, dict[str, dict[float, float]]] = {}

    def put(panel: str, name: str, epoch: Any, value: Any) -> None:
        curves.setdefault(panel, {}).setdefault(name, {})[float(epoch) + 1] = float(value)

    try:
        if log.suffix == ".csv":
            with log.open(encoding="utf-8", newline="") as lines:
                for row in csv.DictReader(lines):
                    for column, (panel, name) in _SUMMARY.items():
                        if row.get(column):
                            put(panel, name, row["epoch"], row[column])
        elif log.suffix == ".json":
            for record in read_json(log):
                put(LOSS, "training", record["epoch"], record["train_loss"])
                for panel, key in ((LOSS, "loss"), (TOP1, "top1")):
                    put(panel, "validation", record["epoch"], record[key])
                    for name, metrics in record.get("subnets", {}).items():
                        put(panel, f"validation, {name}", record["epoch"], metrics[key])
    except (NasExtError, OSError, csv.Error, ValueError, KeyError, TypeError, AttributeError):
        return None
    panels = {panel: {name: (list(at), list(at.values())) for name, at in of.items()} for panel, of in curves.items()}
    return TrainingCurves(log, "epochs", panels) if panels else None


def line(record: Mapping[str, Any]) -> str:
    parts = [f"train loss {record['train_loss']:.3f}, loss {record['loss']:.3f}, top-1 {record['top1']:.2f} %"]
    parts += [f"{name} {metrics['top1']:.2f} %" for name, metrics in record.get("subnets", {}).items()]
    parts += [f"tau of ranking {record['stability_tau']:.3f}"] if "stability_tau" in record else []
    return ", ".join(parts)
