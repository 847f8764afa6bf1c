"""BLEU of networks that differ in the kind of attention alone, on a real corpus.

``python -m benchmarks.attention_quality BIN --work DIR`` where BIN is a folder of ``fairseq-preprocess`` (see
``benchmarks.translation_quality``). One supernet over ``mformer_small`` is trained, and its largest network evaluated
with inherited weights and each placement of linear attention; with ``--standalone`` each is also trained on its own,
with as many updates and the same schedule. Each step writes one file below DIR and is skipped when that exists.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from benchmarks.translation_quality import Job
from nas_core.files import read_json, write_json
from nas_core.latency.machine import describe_machine
from nas_core.space import Architecture, get_space

RESULT = Path(__file__).parent / "results" / "attention_quality.json"
SPACE = "mformer_small"
SOFTMAX, LINEAR = ["softmax"] * 3, ["linear"] * 3
PLACES = {
    "softmax everywhere": (SOFTMAX, SOFTMAX, SOFTMAX),
    "linear in encoder layer 2": (["softmax", "linear", "softmax"], SOFTMAX, SOFTMAX),
    "linear in the encoder": (LINEAR, SOFTMAX, SOFTMAX),
    "linear in the decoder": (SOFTMAX, LINEAR, SOFTMAX),
    "linear across": (SOFTMAX, SOFTMAX, LINEAR),
    "linear everywhere": (LINEAR, LINEAR, LINEAR),
}
"""Kinds of the encoder's, the decoder's and the attention between them, in the three layers of each."""
OPTIONS = ["--max-source-positions", 256, "--max-target-positions", 256]


def architecture(places: tuple[list[str], list[str], list[str]]) -> Architecture:
    genes = ("encoder.self_attention", "decoder.self_attention", "decoder.cross_attention")
    return Architecture({**get_space(SPACE).largest().to_dict(), **dict(zip(genes, places, strict=True))})


def measure(job: Job, standalone: bool) -> list[dict[str, Any]]:
    supernet = job.train(
        "supernet", job.updates, 3e-3, "--task", "supernet_translation", "--arch", SPACE, "--sampling", "sandwich",
        "--valid-random", 2, *OPTIONS,
    )  # fmt: skip
    rows = []
    for title, places in PLACES.items():
        name = title.replace(" ", "-")
        file = job.work / f"{name}.json"
        architecture(places).save(file)
        inherited = job.subnet(name, supernet, file)
        row: dict[str, Any] = {"attention": title, "inherited_bleu": round(job.bleu(f"inherited-{name}", inherited), 2)}
        if standalone:
            alone = job.train(f"alone-{name}", job.updates, 3e-3, "--arch", SPACE, "--subnet", file, *OPTIONS)
            row["standalone_bleu"] = round(job.bleu(f"alone-{name}", alone), 2)
        print(row, flush=True)
        rows.append(row)
    return rows


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, help="folder of fairseq-preprocess")
    parser.add_argument("--work", type=Path, default=Path("runs/attention_quality"))
    parser.add_argument("--updates", type=int, default=1400, help="of the supernet, and of each standalone network")
    parser.add_argument("--standalone", action="store_true", help="train each network on its own, too")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    job = Job(options.bin, options.work, SPACE, options.updates, 0, options.threads, 0)
    rows = measure(job, options.standalone)
    seconds = {file.stem: read_json(file) for file in sorted((options.work / "seconds").glob("*.json"))}
    machine = describe_machine("cpu", options.threads)
    write_json(options.out, {"updates": options.updates, "rows": rows, "seconds": seconds, "machine": machine})


if __name__ == "__main__":
    main()
