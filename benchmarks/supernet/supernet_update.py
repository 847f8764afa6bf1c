"""Cost of a training update of a supernet, relative to fairseq's ``transformer`` or in every precision of a device.

``python -m benchmarks supernet_update [--size small wmt] [--threads 1] [--repeats 30] [--sentences N]`` runs on the CPU
with fairseq's trainer (:mod:`benchmarks.parts.fairseq_update`); with ``--device cuda``, without fairseq
(:mod:`benchmarks.parts.network_update`).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.parts.network_update import EXPERTS, SAMPLINGS, Case, measure_update
from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import measure_rows
from benchmarks.parts.update_sizes import SIZES
from nas_core.files.reading import read_json
from nas_core.latency.machine import describe_machine
from nas_core.precision import PRECISIONS

RESULTS = Path(__file__).parents[1] / "results"
SENTENCES = {"wmt": 149}
"""Batch size on a device, in sentences: 4,096 tokens at the WMT size, as in the papers."""
WHAT = (
    "forward and backward of the fused loss, gradients clipped, Adam: nas_core's network without fairseq's trainer;"
    " halves under autocast"
)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", nargs="+", choices=SIZES, help="default: small wmt; on a device wmt")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument("--repeats", type=int, help="timed updates; default: 30, on a device 12")
    parser.add_argument("--sentences", type=int, help="sentences per batch; default: about 3,400 tokens (small), 330"
                        " (wmt), 4,096 on a device (wmt)")  # fmt: skip
    parser.add_argument("--device", help="cuda, cuda:1 or cpu: measure without fairseq")
    parser.add_argument(
        "--precision", nargs="+", choices=PRECISIONS, default=PRECISIONS, help="precisions, with --device"
    )
    parser.add_argument("--out", type=Path, help="default: in results, on CUDA in"
                        " results/cuda, none with --device cpu")  # fmt: skip
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    if options.device is None:
        _with_fairseq(options, argv)
    else:
        _on_device(options, argv)


def _with_fairseq(options: argparse.Namespace, argv: list[str] | None) -> None:
    from benchmarks.parts.fairseq_update import measure, version

    out = options.out or RESULTS / "supernet_update.json"
    result = read_json(out) if out.exists() else {}
    for name in options.size or ["small", "wmt"]:
        machine = {**describe_machine("cpu", options.threads), "fairseq": version()}
        size = replace(SIZES[name], sentences=options.sentences or SIZES[name].sentences)
        result[name] = {**measure(size, options.repeats or 30), "machine": machine}
        write_result(out, result, command(__file__, argv), adds=True)
        print(json.dumps({name: result[name]}, indent=2))


def _on_device(options: argparse.Namespace, argv: list[str] | None) -> None:
    cuda = torch.device(options.device).type == "cuda"
    out = options.out or (RESULTS / "cuda" / "supernet_update.json" if cuda else None)
    settings = {"machine": describe_machine(options.device, options.threads), "updates": options.repeats or 12}
    cases = [
        Case(size, experts, sampling, precision)
        for size in options.size or ["wmt"]
        for precision in options.precision
        for sampling in SAMPLINGS
        for experts in EXPERTS
    ]

    def measure(index: int) -> dict[str, Any]:
        size = SIZES[cases[index].size]
        sentences = options.sentences or SENTENCES.get(cases[index].size, size.sentences)
        return measure_update(
            cases[index], replace(size, sentences=sentences), torch.device(options.device), settings["updates"]
        )

    keys = [case.key for case in cases]
    rows = measure_rows(out, keys, {**settings, "sentences": options.sentences}, measure)
    if out is not None:
        write_result(out, {**settings, "what": WHAT, "rows": rows}, command(__file__, argv))


if __name__ == "__main__":
    main()
