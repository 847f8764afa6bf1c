"""What a teacher adds to a training update of a supernet: computed, read from disk, or the largest subnet.

Run: ``python -m benchmarks teacher_update [--size small] [--threads 1] [--repeats 30] [--sentences N]`` with fairseq's
trainer on the CPU; see :mod:`benchmarks.parts.trained.teacher_update`.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.parts.record import command, write_result
from benchmarks.parts.update_sizes import SIZES
from nas_core.latency.machine import describe_machine

RESULTS = Path(__file__).parents[1] / "results"


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="small", help="default: small")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--repeats", type=int, default=30, help="updates of each that are timed")
    parser.add_argument("--sentences", type=int, help="of a batch; default: as the size has them, about 3,400 tokens")
    parser.add_argument("--out", type=Path, default=RESULTS / "teacher_update.json", help="where the JSON goes")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)

    from benchmarks.parts.fairseq_update import version
    from benchmarks.parts.trained.teacher_update import measure

    machine = {**describe_machine("cpu", options.threads), "fairseq": version()}
    size = SIZES[options.size]
    size = replace(size, sentences=options.sentences or size.sentences)
    result = {"size": options.size, **measure(size, options.repeats), "machine": machine}
    write_result(options.out, result, command(__file__, argv))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
