"""Latency models on what timm measured of its own networks; shown once its result is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.page.results import Results
from benchmarks.page.section import Section
from benchmarks.page.words import count, fixed, joined, spread, table

__all__ = ["SECTIONS"]

NAME = "timm_networks"
QUADRATIC = "quadratic"


def _row(results: Results, device: str, model: str) -> list[str]:
    """A model on a device: with its modules left out, and with others of them learned."""
    apart = results.row(NAME, device=device, model=model, split="modules")
    among = results.row(NAME, device=device, model=model, split="networks")
    figures = [apart[name] for name in ("mape_percent", "median_percent", "acc10_percent", "module_mean_mape_percent")]
    return [device, f"`{model}`", *map(fixed, figures), fixed(among["mape_percent"])]


def _values(results: Results) -> Mapping[str, str]:
    devices: Mapping[str, Any] = results[NAME]["devices"]
    rows = results.rows(NAME, split="modules")
    models = {device: [row["model"] for row in rows if row["device"] == device] for device in devices}

    def errors(device: str) -> dict[str, float]:
        return {row["model"]: row["mape_percent"] for row in rows if row["device"] == device}

    best = {device: min(errors(device), key=lambda model: errors(device)[model]) for device in devices}
    told = [
        f"{device}: `{best[device]}`, {fixed(errors(device)[best[device]])} %"
        + (f" (`{QUADRATIC}` {fixed(errors(device)[QUADRATIC])} %)" if QUADRATIC in models[device] else "")
        for device in devices
    ]
    sizes = [
        f"{device} {count(one['networks'])} ({count(one['modules'])} modules, batch {spread(one['batches'])},"
        f" {count(sum(one['left_out'].values()))} left out)"
        for device, one in devices.items()
    ]
    return {
        "sizes": joined(sizes),
        "folds": spread([row["folds"] for row in rows]),
        "best": joined(told),
        "table": table(
            [
                "device",
                "model",
                "error %",
                "median %",
                "within 10 %",
                "mean of modules %",
                "others of its module learned %",
            ],
            [_row(results, device, model) for device in devices for model in models[device]],
            left=2,
        ),
    }


SECTIONS = (Section("Networks that timm measured", (NAME,), _values, optional=True),)
