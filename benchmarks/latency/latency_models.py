"""The linear latency model on HAT's five published tables (2,000 measurements each).

``python -m benchmarks latency_models [--seeds 5]``. Errors on held-out rows are means over random splits. Predictions
of HAT's released architectures, measured on another day, and predictions per second are reported too. NAS_EXT_DATA
names the folder of the tables (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.parts import published as _published
from benchmarks.parts.published import LATENCY_TABLES, RELEASED, absent, hat_table
from benchmarks.parts.record import command, write_result
from nas_core.latency.by_genes.dataset import LatencyData
from nas_core.latency.by_genes.fit import quality, random_split
from nas_core.latency.by_genes.linear import LinearModel
from nas_core.latency.machine import describe_machine
from nas_core.space import get_space

RESULT = Path(__file__).parents[1] / "results" / "latency_models.json"
TABLES = {
    "iwslt14deen_gpu_titanxp": "hat_iwslt14_de_en",
    "wmt14ende_cpu_raspberrypi": "hat_wmt14_en_de",
    "wmt14ende_gpu_titanxp": "hat_wmt14_en_de",
    "wmt14enfr_cpu_raspberrypi": "hat_wmt14_en_fr",
    "wmt14enfr_cpu_xeon": "hat_wmt14_en_fr",
}
AIMS = (
    ("wmt14enfr_cpu_raspberrypi", "mape_percent", "<=", 1.0),
    ("wmt14enfr_cpu_raspberrypi", "kendall_tau", ">=", 0.965),
    ("wmt14ende_gpu_titanxp", "mape_percent", "<=", 6.0),
)


def evaluate_table(data: LatencyData, seeds: Sequence[int], bar: tqdm[Any]) -> dict[str, float]:
    """Return means over splits."""
    splits: list[dict[str, Any]] = []
    for seed in seeds:
        train, test = random_split(len(data), 0.2, seed)
        model = LinearModel(data.space, data.source).fit(data.inputs[train], data.latency_ms[train])
        figures = quality(model.predict_inputs(data.inputs[test]), data.latency_ms[test], model.interval)
        splits.append(figures.to_dict())
        bar.update()
    return {
        name: round(float(np.mean([metrics[name] for metrics in splits])), 4)
        for name, value in splits[0].items()
        if value is not None
    }


def released(data: LatencyData, name: str) -> dict[str, float] | None:
    """Predict HAT's released architectures of the same task and device."""
    if absent(RELEASED):
        return None
    task, _, device = name.split("_")
    networks = [
        (row, architecture)
        for row, architecture in _published.released()
        if (row["task"], row["hardware"]) == (task, device)
    ]
    model = LinearModel(data.space, data.source).fit(data.inputs, data.latency_ms)
    predicted = model.predict([architecture for _, architecture in networks])
    error = predicted / np.array([row["latency_ms"] for row, _ in networks]) - 1
    return {"count": len(networks), "mape_percent": round(float(np.abs(error).mean() * 100), 2)}


def rows_per_second() -> dict[str, int]:
    """Return predictions per second for ``hat_wmt14_en_de``, best of five runs."""
    space = get_space("hat_wmt14_en_de")
    rows = space.sample_rows(np.random.default_rng(0), 100_000)
    latency = 50.0 + rows.clip(0).sum(1)
    speeds = {}
    for name, source in (("linear", "rows"), ("linear, of a table", "summary")):
        inputs, seconds = rows[:300] if source == "rows" else space.encode_rows(rows[:300], "summary"), []
        model = LinearModel(space, source).fit(inputs, latency[:300])
        for _ in range(5):
            start = time.perf_counter()
            model.predict_rows(rows)
            seconds.append(time.perf_counter() - start)
        speeds[name] = round(len(rows) / min(seconds))
    return speeds


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="number of random splits")
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    if reason := absent(LATENCY_TABLES):
        print(f"skipped: {reason}")
        return 0
    tables: dict[str, Any] = {}
    with tqdm(total=len(TABLES) * args.seeds, desc="fits", disable=None) as bar:
        for name, space in TABLES.items():
            data = hat_table(name, get_space(space))
            figures = evaluate_table(data, range(args.seeds), bar)
            tables[name] = {"splits": args.seeds, **figures, "released_architectures": released(data, name)}
    aims = []
    for name, metric, sign, bound in AIMS:
        value = tables[name][metric]
        met = bool(value <= bound if sign == "<=" else value >= bound)
        aims.append({"table": name, "metric": metric, "aim": f"{sign} {bound}", "value": value, "met": met})
    result = {
        "machine": describe_machine("cpu", 1),
        "held_out_share": 0.2,
        "tables": tables,
        "rows_per_second": rows_per_second(),
        "aims": aims,
    }
    write_result(args.out, result, command(__file__, argv))
    print(_text(result))
    return 0 if all(aim["met"] for aim in aims) else 1


def _text(result: dict[str, Any]) -> str:
    lines = [f"{'table':27} {'MAPE %':>8} {'R2':>6} {'tau':>6}"]
    for name, table in result["tables"].items():
        lines.append(f"{name:27} {table['mape_percent']:8.2f} {table['r2']:6.3f} {table['kendall_tau']:6.3f}")
    lines += [f"{model}: {speed:,} rows/s" for model, speed in result["rows_per_second"].items()]
    lines += [
        f"{'met' if aim['met'] else 'MISSED'}: {aim['table']} {aim['metric']} {aim['value']} {aim['aim']}"
        for aim in result["aims"]
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
