"""BLEU and latency of the networks of ``make demo`` and of shallow networks, trained from scratch.

``python -m benchmarks demo_front RUN --work DIR``: RUN is the folder of a finished ``make demo``. Networks are trained
by ``fairseq-train`` with the supernet's options and number of updates. Latencies are relative to the largest network's,
measured alternately.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.parts.record import command, write_result
from benchmarks.supernet.elastic_translation import relative_latency, with_decoder_layers
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json
from nas_core.latency.by_genes.dataset import LatencyDataset
from nas_core.latency.machine import describe_machine
from nas_core.models import params_m
from nas_core.report.run import limit_label
from nas_core.space import Architecture, get_space

RESULT = Path(__file__).parents[1] / "results" / "demo_front.json"
SHALLOW = {"one decoder layer": 1, "two decoder layers": 2}
"""The largest network with fewer of its three decoder layers."""
SUPERNET_ONLY = ("--task", "--arch", "--mos", "--mos-experts", "--sampling", "--save-dir")


def _command(log: Path) -> list[str]:
    """Return the command in the first line of a log."""
    return shlex.split(log.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("$ "))


def _standalone_command(argv: list[str], network: Path, folder: Path) -> list[str]:
    arguments, skip = [], False
    for word in argv:
        if not (skip or word in SUPERNET_ONLY):
            arguments.append(word)
        skip = word in SUPERNET_ONLY and not skip
    options = [
        "--task",
        "translation",
        "--arch",
        "hat_transformer_small",
        "--subnet",
        network,
        "--save-dir",
        folder,
    ]
    return [*arguments, *map(str, options)]


def _run(argv: list[str], log: Path) -> str:
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w", encoding="utf-8") as file:
        if subprocess.run(argv, stdout=file, stderr=subprocess.STDOUT, check=False).returncode:
            raise SystemExit(f"{argv[0]} failed, see {log}")
    return log.read_text(encoding="utf-8")


def from_scratch(run: Path, work: Path, name: str, architecture: Architecture) -> float:
    """Train a network from scratch; return its BLEU on the demo's test set."""
    result = work / f"{architecture.key}.bleu.json"
    if not result.exists():
        network, folder = work / f"{architecture.key}.json", work / architecture.key
        architecture.save(network)
        train = _standalone_command(_command(run / "logs" / "train.log"), network, folder)
        _run(train, work / "logs" / f"{architecture.key}.log")
        generate = [
            str(Path(train[0]).with_name("fairseq-generate")),
            train[1],
            "--path",
            str(folder / "checkpoint_best.pt"),
        ]
        generated = _run(
            [*generate, "--beam", "4", "--max-len-b", "50"], work / "logs" / f"generate-{architecture.key}.log"
        )
        write_json(result, {"name": name, "bleu": float(re.findall(r"BLEU4 = ([\d.]+)", generated)[-1])})
    return float(read_json(result)["bleu"])


def report(run: Path, work: Path) -> dict[str, Any]:
    results = read_json(run / "results.json")
    rows = {row["name"]: row for row in results["networks"]}
    networks = {name: Architecture(row["genes"]) for name, row in rows.items()}
    networks |= {name: with_decoder_layers(networks["largest"], layers) for name, layers in SHALLOW.items()}
    measured = LatencyDataset.read(run / "latency.jsonl").settings["workload"]
    workload = {name: value for name, value in measured.items() if name != "kind"}
    shares = relative_latency(get_space("hat_small"), networks["largest"], networks, **workload)
    content = [
        {
            "network": limit_label(name),
            "params_m": round(params_m(architecture), 3),
            "measured_ms": rows.get(name, {}).get("latency_ms"),
            "relative_latency": shares[name],
            "bleu_inherited": rows.get(name, {}).get("bleu"),
            "bleu_from_scratch": from_scratch(run, work, name, architecture),
        }
        for name, architecture in networks.items()
    ]
    return {"updates": results["updates"], "rows": content, "machine": describe_machine("cpu", 1)}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", help="folder of a finished make demo")
    parser.add_argument("--work", type=Path, default=Path("runs/demo_front"))
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    if args.run is None:
        sys.exit("skipped: needs the folder of a finished make demo")
    content = report(args.run, args.work)
    write_result(args.out, content, command(__file__, argv))
    print(json.dumps(content["rows"], indent=1))


if __name__ == "__main__":
    main()
