"""All studies of a small supernet of each host.

``python -m benchmarks study_figures [BIN] --work DIR``: BIN is a folder of ``fairseq-preprocess`` with a joined
dictionary (such as Multi30k en-de, lower-cased, 3,000 subwords); images are CIFAR-10 in the folder that NAS_EXT_DATA
names. A host without its data is skipped. Each supernet has neuron-wise experts.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.parts.record import command, write_result
from benchmarks.parts.runs import TRAIN, Runs
from benchmarks.supernet.supernet_trust import Job
from nas_core.latency.machine import describe_machine

RESULT = Path(__file__).parents[1] / "results" / "study_figures.json"
METHOD = "neuron-wise"


def studies(work: Path, args: argparse.Namespace) -> dict[str, tuple[object, ...]]:
    """Return the options of each study; later ones read files of earlier ones."""
    search = ("iterations=5", "population=20", "parents=5", "mutations=10", "crossovers=5")
    return {
        "gap": ("--set", f"architectures={args.networks}"),
        "routing": (),
        "conflict": ("--set", "batches=8"),
        "close-gap": (
            "--set", f"standalone={work / 'gap' / 'small' / 'standalone.jsonl'}",
            "--set", f"every={args.every}", "--set", f"most_updates={args.updates}",
        ),
        "experts": ("--set", "experts=1", "--set", "experts=2", "--set", "experts=4"),
        "router": ("--set", "layers=2", "--set", "layers=3"),
        "stability": tuple(word for setting in search for word in ("--set", f"set.{setting}")),
        "overhead": (),
    }  # fmt: skip


def translation(args: argparse.Namespace) -> Path:
    """Return the checkpoint of fairseq's supernet."""
    job = Job(args.work / "fairseq", args.threads, args.bin, args.space, args.updates, args.networks, args.tokens)
    return job.supernet(METHOD, 1, args.updates)


def images(args: argparse.Namespace) -> Path:
    """Return the checkpoint of timm's supernet."""
    runs = Runs(args.work / "timm", args.threads)
    folder = runs.work / "supernet"
    runs.run(
        "supernet", "python", "-m", "timm_ext.train", "--data", TRAIN, "--train-count", args.images, "--val-count",
        args.images // 5, "--model", "mos_vit_cifar10_small_supernet", "--mos", "neuron", "--sampling", "sandwich",
        "--updates", args.updates, "--batch-size", args.batch, "--lr", 1e-3, "--warmup-updates", args.updates // 10,
        "--seed", 1, "--output", folder,
    )  # fmt: skip
    return folder / "last.pt"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, nargs="?")
    parser.add_argument("--work", type=Path, default=Path("runs/study_figures"))
    parser.add_argument("--space", default="hat_small", help="of translation")
    parser.add_argument("--updates", type=int, default=300)
    parser.add_argument("--tokens", type=int, default=1024, help="of a batch of translation")
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--batch", type=int, default=64, help="images of a batch")
    parser.add_argument("--networks", type=int, default=5, help="networks that are trained from scratch")
    parser.add_argument("--every", type=int, default=50, help="updates between evaluations of close-gap")
    parser.add_argument("--examples", type=int, default=500, help="validation examples")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    hosts = {**({"fairseq": translation} if args.bin else {}), **({"timm": images} if TRAIN.exists() else {})}
    if not hosts:
        print("skipped: needs a preprocessed corpus or CIFAR-10, see python -m benchmarks study_figures --help")
        return
    names = ("space", "updates", "tokens", "images", "batch", "examples")
    figures: dict[str, dict[str, Any]] = {}
    for host, supernet in hosts.items():
        runs, figures[host] = Runs(args.work / host, args.threads), {}
        checkpoint = supernet(args)
        for name, options in studies(runs.work, args).items():
            result = runs.study(name, "small", checkpoint, *options, "--valid-sentences", args.examples)
            settings = {key: value for key, value in result["settings"].items() if key not in ("arch", "standalone")}
            figures[host][name] = {"settings": settings, "summary": result["summary"]}
            print(host, name, result["summary"], flush=True)
            sizes = {key: getattr(args, key) for key in names}
            content = {**sizes, "hosts": figures, "machine": describe_machine("cpu", args.threads)}
            write_result(args.out, content, command(__file__, argv))


if __name__ == "__main__":
    main()
