"""Latency on a held-out device from 20, 100 or 900 measurements on it, without and with other devices.

``python -m benchmarks device_transfer``. Tables are ``latency_nasbench201.npz`` (10 devices) and ``latency_fbnet.npz``
(27). Training networks are random; the others are the test set. For ``transfer`` and ``transfer, logs``, the other
devices' latencies are known for all networks, as in published work; for ``transfer, 900 each``, for 900 other networks.
The same chip at another batch size is held out too. Networks with a latency below 0.5 ms are excluded as implausible.

Linear methods run on all devices, the others on three, or on ``--devices``. Results are stored in ``--work``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.parts import transfer as _transfer
from benchmarks.parts import transfer_networks as _transfer_networks
from benchmarks.parts.published import DEVICE_TABLES, LatencyTable, absent, latency_table
from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import merge_rows, results, settings_hash
from benchmarks.parts.transfer import Array, Case
from nas_core.latency.machine import describe_machine
from nas_core.predictor import kendall_tau
from nas_core.predictor.metrics import accuracy_within, mape

RESULT = Path(__file__).parents[1] / "results" / "device_transfer.json"
LINEAR: dict[str, Callable[[Case], Array]] = {
    "linear": _transfer.from_scratch,
    "transfer": _transfer.transfer,
    "transfer, 900 each": _transfer.transfer_predicted,
    "transfer, logs": _transfer.transfer_logs,
}
TRAINED: dict[str, Callable[[Case], Array]] = {
    "statistics": _transfer_networks.statistics,
    "nn-former": _transfer_networks.network,
    "nn-former, pretrained": _transfer_networks.finetuned,
}
METHODS = LINEAR | TRAINED
SELECTED_DEVICES = ("1080ti_1", "gold_6226", "pixel2")
"""Devices of both tables: a GPU, a server CPU and a phone (whole milliseconds)."""
FIGURES = ("mape", "within_10", "tau")


@dataclass(frozen=True)
class Task:
    table: str
    device: str
    size: int
    draw: int
    method: str

    @property
    def key(self) -> dict[str, Any]:
        names = ("table", "device", "size", "draw", "method")
        return {name: getattr(self, name) for name in names} | {"settings": settings_of(self.method, self.size)}


def settings_of(method: str, size: int) -> str:
    if method in LINEAR:
        return settings_hash(
            {"penalties": list(_transfer.PENALTIES), "shares": _transfer.SCALES, "own": _transfer.SOURCE_SIZE}
        )
    if method == "statistics":
        return settings_hash(_transfer_networks.STATISTICS)
    return settings_hash(_transfer_networks.network_settings(size))


def run(task: Task) -> dict[str, Any]:
    """Fit and evaluate one method on one thread."""
    torch.set_num_threads(1)
    return task.key | evaluate(latency_table(task.table), task)


def evaluate(table: LatencyTable, task: Task) -> dict[str, float]:
    case = Case(table, task.device, task.size, task.draw)
    start = time.process_time()
    predicted = METHODS[task.method](case)
    cpu_s = time.process_time() - start
    measured = case.latency_ms[case.test]
    figures = (mape(predicted, measured), accuracy_within(predicted, measured), kendall_tau(predicted, measured))
    return dict(zip(FIGURES, figures, strict=True)) | {"cpu_s": round(cpu_s, 2)}


def summary(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per table, method and number of training networks, with means and medians over devices.

    ``raspi4`` has outliers: one value in a hundred is at most a quarter of the plausible value.
    """
    groups: dict[tuple[str, str, int], dict[str, list[dict[str, Any]]]] = {}
    for record in records:
        if record["method"] in METHODS and record["settings"] == settings_of(record["method"], record["size"]):
            group = groups.setdefault((record["table"], record["method"], record["size"]), {})
            group.setdefault(record["device"], []).append(record)
    return [
        {
            **dict(zip(("table", "method", "size"), key, strict=True)),
            "draws": min(len(draws) for draws in devices.values()),
            "count": len(devices),
            "mean": _mean(list(devices.values())),
            "median_mape": round(float(np.median([_mean([draws])["mape"] for draws in devices.values()])), 3),
            "few": _mean([devices[name] for name in SELECTED_DEVICES])
            if set(SELECTED_DEVICES) <= set(devices)
            else None,
            "devices": {name: _mean([draws]) for name, draws in sorted(devices.items())},
        }
        for key, devices in sorted(groups.items())
    ]


def _mean(devices: list[list[dict[str, Any]]]) -> dict[str, float]:
    names = (*FIGURES, "cpu_s")
    return {name: round(float(np.mean([np.mean([r[name] for r in draws]) for draws in devices])), 3) for name in names}


def format_rows(rows: list[Any]) -> str:
    names = f"{'table':12} {'method':22} {'size':>5} {'devices':>7} {'MAPE %':>7} {'median':>7} {'Acc 10 %':>8}"
    lines = [f"{names} {'tau':>6} {'MAPE % of 3':>12}"]
    for row in sorted(rows, key=lambda row: (row["table"], row["size"], row["mean"]["mape"])):
        mean, selected = row["mean"], "" if row["few"] is None else f"{row['few']['mape']:12.2f}"
        lines.append(
            f"{row['table']:12} {row['method']:22} {row['size']:5} {row['count']:7} {mean['mape']:7.2f}"
            f" {row['median_mape']:7.2f} {mean['within_10']:8.1f} {mean['tau']:6.3f} {selected}"
        )
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=DEVICE_TABLES, default=[*DEVICE_TABLES])
    parser.add_argument("--devices", nargs="+", help="held-out devices; default: all, or three")
    parser.add_argument("--sizes", nargs="+", type=int, default=[20, 100, 900], help="numbers of training networks")
    parser.add_argument("--draws", nargs="+", type=int, default=[0, 1, 2], help="seeds of the draws")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--work", type=Path, default=Path("runs/device_transfer.jsonl"), help="file of single results")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    tasks = []
    for name in options.tables:
        if reason := absent(DEVICE_TABLES[name]):
            print(f"skipped: {reason}")
            continue
        table = latency_table(name)
        if unknown := set(options.devices or ()) - set(table.devices):
            parser.error(f"table {name} has no device {min(unknown)!r}; it has {', '.join(table.devices)}")
        if wrong := [size for size in options.sizes if not 2 <= size < len(table.ops)]:
            parser.error(f"--sizes {wrong[0]} is invalid for table {name}; expected 2 to {len(table.ops) - 1}")
        tasks += [
            Task(name, device, size, draw, method)
            for draw in options.draws
            for linear in (True, False)
            for device in options.devices or (table.devices if linear else SELECTED_DEVICES)
            for method in options.methods
            if (method in LINEAR) == linear
            for size in options.sizes
        ]
    if not tasks:
        return
    rows = merge_rows(
        options.out, summary(results(tasks, run, options.work, options.jobs)), ("table", "method", "size")
    )
    write_result(options.out, {"rows": rows, "machine": describe_machine("cpu", 1)}, command(__file__, argv), adds=True)
    print(format_rows(list(rows)))


if __name__ == "__main__":
    main()
