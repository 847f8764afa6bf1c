"""Run the commands of fairseq and nas-ext from a parallel corpus to fast translation models.

``make demo``, or ``python -m examples.demo --out runs/demo``. Run it again to resume after an interruption.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairseq_ext.quickstart.corpus import corpus
from nas_core.files.reading import read_json
from nas_core.files.writing import write_atomic, write_json
from nas_core.latency import load_latency_model
from nas_core.progress import SlowWork, duration
from nas_core.space import Architecture, get_space

PAIRS = {"test": 1 / 32, "valid": 1 / 40, "train": 1.0}
"""Split -> number of sentence pairs, relative to the training split."""
CPU = [] if torch.cuda.is_available() else ["--cpu"]
CLOCK = ["--clock", "cpu"] if CPU else ["--device", "cuda"]
SPACE = get_space("hat_small")


class Stages:
    """Runner of stages (groups of commands) with log files; finished stages are skipped."""

    def __init__(self, out: Path) -> None:
        self.folder = out / "logs"
        self.folder.mkdir(parents=True, exist_ok=True)

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def run(self, name: str, title: str, done: bool, *commands: list[object], updates: int = 0) -> None:
        """Run the commands of a stage, unless it is ``done``; exit if a command fails."""
        print(title, flush=True)
        start = time.monotonic()
        for program, *options in () if done else commands:
            self._run([str(Path(sys.executable).parent / str(program)), *map(str, options)], name, updates)
        print(f"    {'done before' if done else duration(time.monotonic() - start)}", flush=True)

    def _run(self, command: list[str], name: str, updates: int) -> None:
        path, progress = self.folder / f"{name}.log", SlowWork("    updates", updates)
        with open(path, "a", encoding="utf-8") as log:
            print(f"$ {shlex.join(command)}", file=log, flush=True)
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for line in process.stdout or ():
                log.write(line)
                if done := re.search(r'"num_updates": "(\d+)"', line):
                    progress.advance(int(done[1]))
                elif re.search(r"about .* (left|more)", line):
                    print(f"    {line.strip()}", flush=True)
        if process.wait():
            sys.exit(f"{command[0]} failed with exit code {process.returncode}; see {path}")


def write_corpus(folder: Path, pairs: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for split, sentences in corpus({name: round(share * pairs) for name, share in PAIRS.items()}).items():
        for side, language in enumerate(("en", "de")):
            write_atomic(folder / f"{split}.{language}", "".join(f"{pair[side]}\n" for pair in sentences))


def latency_limits(model: Path, count: int) -> list[float]:
    """Return limits in ms, evenly spaced between the latencies of the smallest and the largest architecture."""
    latency = load_latency_model(model, "genes", SPACE)
    low, high = (float(ms) for ms in latency.predict([SPACE.smallest(), SPACE.largest()]))
    return [round(limit, 1) for limit in np.linspace(low, high, count + 2)[1:-1].tolist()]


def networks(out: Path) -> Iterator[dict[str, Any]]:
    """Yield name, key, genes and measured latency of the smallest network, the search results, and the largest."""
    measured = [json.loads(line) for line in (out / "latency.jsonl").read_text(encoding="utf-8").splitlines()[1:3]]
    finalists = read_json(out / "search" / "finalists.json")["finalists"]
    rows = [(" ".join(row["best_of"]), row, row["measured"]) for row in finalists if row["best_of"]]
    for name, row, times in [("smallest", measured[0], measured[0]), *rows, ("largest", measured[1], measured[1])]:
        yield {"name": name, "key": row["key"], "genes": row["genes"], "latency_ms": times["latency_ms"]}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/demo"))
    parser.add_argument("--data", type=Path, help="folder of fairseq-preprocess; default: a synthetic corpus")
    parser.add_argument("--pairs", type=int, default=16_000, help="number of sentence pairs of the synthetic corpus")
    parser.add_argument("--updates", type=int, default=1000, help="number of updates of the supernet's training")
    parser.add_argument("--samples", type=int, default=60, help="number of architectures whose latency is measured")
    parser.add_argument("--repeats", type=int, default=10, help="number of timed passes per latency measurement")
    parser.add_argument("--population", type=int, default=24, help="population size of the search")
    parser.add_argument("--limits", type=int, default=3, help="number of latency limits of the search")
    args = parser.parse_args(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    out, data, stages = args.out, args.data or args.out / "bin", Stages(args.out)
    supernet, model, search = out / "supernet" / "checkpoint_best.pt", out / "latency.json", out / "search"
    if args.data is None:
        write_corpus(out / "corpus", args.pairs)
        prefixes = [word for split in PAIRS for word in (f"--{split}pref", out / "corpus" / split)]
        stages.run("preprocess", "numbers for words", (data / "dict.de.txt").exists(), [
            "fairseq-preprocess", "-s", "en", "-t", "de", *prefixes, "--joined-dictionary", "--destdir", data,
        ])  # fmt: skip
    stages.run("train", f"train a supernet of {SPACE.name}: {args.updates} updates", model.exists(), [
        "fairseq-train", data, "--task", "supernet_translation", "--arch", "mos_transformer_small", "--mos", "neuron",
        "--share-all-embeddings", "--criterion", "fused_label_smoothed_cross_entropy", "--label-smoothing", 0.1,
        "--optimizer", "adam", "--clip-norm", 1, "--lr", 1.5e-3, "--lr-scheduler", "polynomial_decay",
        "--warmup-updates", args.updates // 4, "--total-num-update", args.updates, "--max-update", args.updates,
        "--max-tokens", 512, "--save-dir", supernet.parent, "--no-epoch-checkpoints", "--num-workers", 0,
        "--log-format", "json", "--log-interval", 10, *CPU,
    ], updates=args.updates)  # fmt: skip
    stages.run("latency", f"measure {args.samples} architectures", model.exists(), [
        "nas-ext", "latency", "collect", "--checkpoint", supernet, "--samples", args.samples, *CLOCK,
        "--repeats", args.repeats, "--out", out / "latency.jsonl",
    ], ["nas-ext", "latency", "fit", "--data", out / "latency.jsonl", "--out", model])  # fmt: skip
    limits = [word for limit in latency_limits(model, args.limits) for word in ("--limit", f"latency_ms={limit}")]
    stages.run("search", "search", (search / "finalists.json").exists(), [
        "nas-ext", "search", "--checkpoint", supernet, "--latency-model", model, *limits, "--strategy",
        "evolution", "--set", "iterations=8",
        "--set", f"population={args.population}", "--finalists", 1, "--out", search,
    ])  # fmt: skip
    rows = list(networks(out))
    for row in rows:
        file = out / "networks" / f"{row['key']}.json"
        Architecture(row["genes"]).save(file)
        stages.run(row["key"], f"extract and translate: {row['name']}", "BLEU4 = " in stages.log(row["key"]), [
            "nas-ext", "extract", "--checkpoint", supernet, "--arch", file, "--out", file.with_suffix(".pt"),
        ], [
            "fairseq-generate", data, "--path", file.with_suffix(".pt"), "--beam", 4, "--max-len-b", 50, *CPU,
        ])  # fmt: skip
        row["bleu"] = float(re.findall(r"BLEU4 = ([\d.]+)", stages.log(row["key"]))[-1])
    stages.run("report", "report", False, ["nas-ext", "report", search])
    write_json(out / "results.json", {"updates": args.updates, "networks": rows})
    for row in rows:
        print(f"{row['name']:24} {row['latency_ms']:6.1f} ms {row['bleu']:6.1f} BLEU")
    print(f"report: {search / 'report.html'}")


if __name__ == "__main__":
    main()
