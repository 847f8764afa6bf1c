"""Errors of latency models for cells and chains, fitted to 10, 50 or 900 measurements on one device.

Run: ``python -m benchmarks cell_latency``. The additive model is compared with ridge regressions on
``latency_nasbench201.npz`` (10 devices) and ``latency_fbnet.npz`` (27). All are fitted to the same random networks and
tested on up to 2,000 others. Constants of the additive model were chosen on :data:`TUNING_DEVICES`; other devices have
separate rows. Intervals are twice the standard error over random draws.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parts import transfer as _transfer
from benchmarks.parts.published import DEVICE_TABLES, absent, latency_table
from benchmarks.parts.record import command, write_result
from benchmarks.parts.transfer import Array, Case
from nas_core.latency.machine import describe_machine
from nas_core.predictor.metrics import mape

RESULT = Path(__file__).parents[1] / "results" / "cell_latency.json"
METHODS: dict[str, Callable[[Case], Array]] = {
    "additive": _transfer.additive,
    "ridge on counts": _transfer.ridge_on_counts,
    "ridge on places": _transfer.ridge_on_positions,
}
TUNING_DEVICES = {
    "nasbench201": ("1080ti_1", "gold_6226", "pixel2", "eyeriss"),
    "fbnet": ("1080ti_1", "1080ti_32", "1080ti_64", "gold_6226", "pixel2", "pixel3", "eyeriss"),
}
MAX_TEST = 2000
"""Largest number of test networks."""


def errors(name: str, size: int, draws: int) -> dict[str, dict[str, list[float]]]:
    """Return method -> device -> mean absolute percentage error of each draw."""
    table = latency_table(name)
    errors_by_method: dict[str, dict[str, list[float]]] = {method: {} for method in METHODS}
    for device in table.devices:
        for draw in range(draws):
            case = Case(table, device, size, draw, MAX_TEST)
            for method, predict in METHODS.items():
                errors_by_method[method].setdefault(device, []).append(mape(predict(case), case.latency_ms[case.test]))
    return errors_by_method


def rows_of(name: str, size: int, draws: int) -> list[dict[str, Any]]:
    """Return a row per group of devices and method, with the devices on which the additive model is worse."""
    errors_by_method = errors(name, size, draws)
    devices = latency_table(name).devices
    groups = {
        "chosen": TUNING_DEVICES[name],
        "unseen": tuple(device for device in devices if device not in TUNING_DEVICES[name]),
    }
    rows = []
    for group, group_devices in groups.items():
        for method, by_device in errors_by_method.items():
            means = np.mean([by_device[device] for device in group_devices], 0)
            differences = [
                np.subtract(errors_by_method["additive"][device], by_device[device]) for device in group_devices
            ]
            worse = [
                device
                for device, difference in zip(group_devices, differences, strict=True)
                if difference.mean() > _interval(difference)
            ]
            rows.append(
                {
                    "table": name,
                    "devices_group": group,
                    "method": method,
                    "size": size,
                    "draws": draws,
                    "mape": round(float(means.mean()), 3),
                    "interval": round(_interval(means), 3),
                    "additive_behind": worse,
                    "devices": {device: round(float(np.mean(by_device[device])), 3) for device in group_devices},
                }
            )
    return rows


def _interval(values: Array) -> float:
    return float(2 * np.std(values, ddof=1) / np.sqrt(len(values)))


def format_rows(rows: list[dict[str, Any]]) -> str:
    lines = [f"{'table':12} {'devices':8} {'method':16} {'measured':>8} {'MAPE %':>7} {'+-':>6}  additive is worse on"]
    for row in rows:
        lines.append(
            f"{row['table']:12} {row['devices_group']:8} {row['method']:16} {row['size']:8} {row['mape']:7.2f}"
            f" {row['interval']:6.2f}  {', '.join(row['additive_behind'])}"
        )
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=[10, 50, 900], help="numbers of measured networks")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    if options.draws < 2:
        parser.error(f"--draws is {options.draws}; expected at least 2")
    rows = []
    for name, path in DEVICE_TABLES.items():
        if reason := absent(path):
            print(f"skipped: {reason}")
            return
        for size in options.sizes:
            rows += rows_of(name, size, options.draws)
    write_result(options.out, {"rows": rows, "machine": describe_machine("cpu", 1)}, command(__file__, argv))
    print(format_rows(rows))


if __name__ == "__main__":
    main()
