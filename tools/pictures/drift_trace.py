"""Measure the trace of the picture ``drift``: ``python -m tools.pictures.drift_trace``, two and a half minutes.

One translation network whose work never changes is measured again and again, as the project measures any network: each
time five passes, with passes of the space's reference before, between and after them. Once with the clock on the wall
and once with the processor's, in turns. What comes out is kept in ``drift_trace.json`` with the date and the machine.
"""

from __future__ import annotations

import datetime
import json
import os
import time
from pathlib import Path

from nas_core.latency import TimingConfig, measure
from nas_core.latency.by_genes import reference_architecture
from nas_core.latency.machine import describe_machine
from nas_core.models.translation import TranslationWorkload, TranslationWorkloadConfig
from nas_core.space import get_space

__all__ = ["FILE"]

FILE = Path(__file__).with_name("drift_trace.json")
SECONDS = 150


def main() -> None:
    """Measure, and write the file."""
    space = get_space("hat_small")
    sizes = TranslationWorkloadConfig(source_vocab=2000, target_vocab=2000, target_length=8)
    workload = TranslationWorkload(space, space.largest(), sizes)
    reference = TranslationWorkload(space, reference_architecture(space), sizes)
    configs = {clock: TimingConfig(warmup=1, repeats=5, clock=clock) for clock in ("wall", "cpu")}
    rows: dict[str, list[list[float]]] = {clock: [] for clock in configs}
    loads = [os.getloadavg()[0]]
    start = time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        for clock, config in configs.items():
            found = measure(workload, reference, config)
            at = time.perf_counter() - start
            rows[clock].append(
                [round(at, 2), round(found.raw_ms, 3), round(found.reference_ms, 3), round(found.relative, 4)]
            )
    loads.append(os.getloadavg()[0])
    made = {
        "what": "the largest network of hat_small, measured again and again between passes of the reference",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": describe_machine("cpu", 1),
        "load": f"other jobs ran on both cores throughout: load average {loads[0]:.1f} before, {loads[1]:.1f} after",
        "columns": ["seconds", "raw_ms", "reference_ms", "relative"],
    }
    lines = (f'  "{clock}": [\n' + ",\n".join(f"   {row}" for row in found) + "\n  ]" for clock, found in rows.items())
    head = json.dumps(made, indent=1).rstrip("\n}")
    FILE.write_text(f'{head},\n "rows": {{\n' + ",\n".join(lines) + "\n }\n}\n", encoding="utf-8")
    print(f"{FILE}: {', '.join(f'{len(found)} with clock {clock}' for clock, found in rows.items())}")


if __name__ == "__main__":
    main()
