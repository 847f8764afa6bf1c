"""What one training update of a supernet costs: beside fairseq's plain ``transformer``, or on a device in every
precision.

Run: ``python -m benchmarks supernet_update [--size small wmt] [--threads 1] [--repeats 30] [--sentences N]`` on the
CPU with fairseq's trainer, see :mod:`benchmarks.parts.fairseq_update`; or with ``--device cuda`` the network itself,
without fairseq: experts, ways of sampling and precisions, see :mod:`benchmarks.parts.network_update`.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from benchmarks.parts.network_update import EXPERTS, SAMPLINGS, Case, measured
from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import is_of, settings_hash
from benchmarks.parts.update_sizes import SIZES
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.reading import read_json
from nas_core.latency.machine import describe_machine
from nas_core.precision import PRECISIONS

RESULTS = Path(__file__).parents[1] / "results"
SENTENCES = {"wmt": 149}
"""Sentences of a batch on a device where they are not those of the size: 4,096 tokens at the WMT size, as the papers
train."""
WHAT = (
    "forward and backward of the fused loss, gradients clipped, Adam: nas_core's network without fairseq's trainer;"
    " halves under autocast"
)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", nargs="+", choices=SIZES, help="default: small wmt; on a device wmt")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--repeats", type=int, help="updates of each that are timed; default: 30; on a device 12")
    parser.add_argument("--sentences", type=int, help="of a batch; default: about 3,400 tokens (small), 330 (wmt), on a"
                        " device 4,096 (wmt)")  # fmt: skip
    parser.add_argument("--device", help="cuda, cuda:1 or cpu: the network itself there, without fairseq")
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS, default=PRECISIONS, help="on a device")
    parser.add_argument("--out", type=Path, help="where the JSON goes; other sizes in it are kept; default: in results,"
                        " on CUDA in results/cuda, with --device cpu nowhere")  # fmt: skip
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    if options.device is None:
        _beside_fairseq(options, argv)
    else:
        _on_device(options, argv)


def _beside_fairseq(options: argparse.Namespace, argv: list[str] | None) -> None:
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
    """A row is kept beside the result once it is measured, so that a run that was stopped goes on."""
    cuda = torch.device(options.device).type == "cuda"
    out = options.out or (RESULTS / "cuda" / "supernet_update.json" if cuda else None)
    work = None if out is None else out.with_suffix(".jsonl")
    kept = read_jsonl(work) if work is not None and work.exists() else []
    repeats = options.repeats or 12
    settings = {"machine": describe_machine(options.device, options.threads), "updates": repeats, "what": WHAT}
    rows: list[dict[str, Any]] = []
    for case in tqdm(_cases(options), disable=None):
        sentences = options.sentences or SENTENCES.get(case.size, SIZES[case.size].sentences)
        key = {**case.key, "settings": settings_hash({**settings, "sentences": sentences})}
        record = next((each for each in kept if is_of(each, key)), None)
        if record is None:
            size = replace(SIZES[case.size], sentences=sentences)
            record = {**key, **measured(case, size, torch.device(options.device), repeats)}
            if work is not None:
                append_jsonl(work, record)
        rows.append({name: value for name, value in record.items() if name != "settings"})
        print(json.dumps(rows[-1]), flush=True)
        if out is not None:
            write_result(out, {**settings, "rows": rows}, command(__file__, argv))
    if work is not None:
        work.unlink(missing_ok=True)


def _cases(options: argparse.Namespace) -> list[Case]:
    return [
        Case(size, experts, sampling, precision)
        for size in options.size or ["wmt"]
        for precision in options.precision
        for sampling in SAMPLINGS
        for experts in EXPERTS
    ]


if __name__ == "__main__":
    main()
