"""Commands of a benchmark that trains networks; finished commands are not repeated."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parts.published import DATA
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json

USER_DIR = Path(__file__).parents[2] / "fairseq_ext"
SENTENCES = ("--workload", "source_length=16", "--workload", "target_length=16", "--workload", "beam=4")
"""Workload of latency measurements."""
_MALLOC_SETTINGS = dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), str(2**30))
"""Settings of glibc, which otherwise returns large buffers to the system after each operation."""
TRAIN, TEST = DATA / "cifar10_jpeg_train.npz", DATA / "cifar10_jpeg_test.npz"


@dataclass(frozen=True)
class Runs:
    """Commands with files in one folder."""

    work: Path
    threads: int
    """Number of CPU threads of each command."""

    def run(self, name: str, program: object, *arguments: object) -> str:
        """Run a command unless it has finished before; return its log."""
        log, seconds = self.work / "logs" / f"{name}.log", self.work / "seconds" / f"{name}.json"
        if not seconds.exists():
            log.parent.mkdir(parents=True, exist_ok=True)
            command = [str(Path(sys.executable).parent / str(program)), *map(str, arguments)]
            environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads)}
            if program == "fairseq-train":
                environment = {**_MALLOC_SETTINGS, **environment}
            start = time.monotonic()
            with open(log, "w", encoding="utf-8") as file:
                print("$", *command, file=file, flush=True)
                process = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, env=environment, check=False)
            if process.returncode:
                raise SystemExit(f"{name} failed, see {log}:\n{log.read_text(encoding='utf-8')[-800:]}")
            write_json(seconds, {"seconds": round(time.monotonic() - start, 1), "threads": self.threads})
        return log.read_text(encoding="utf-8")

    def seconds(self) -> dict[str, Any]:
        return {path.stem: read_json(path) for path in sorted((self.work / "seconds").glob("*.json"))}

    def latency_model(self, space: object, samples: int, *options: object) -> Path:
        """Return a latency model of a search space, measured by CPU time."""
        data, model = self.work / "latency.jsonl", self.work / "latency.json"
        self.run(
            "latency-collect", "nas-ext", "latency", "collect", "--space", space, "--out", data, "--samples", samples,
            "--threads", 1, "--clock", "cpu", *options,
        )  # fmt: skip
        self.run("latency-fit", "nas-ext", "latency", "fit", "--data", data, "--out", model)
        return model


@dataclass(frozen=True)
class TranslationRuns(Runs):
    """Commands on a corpus of ``fairseq-preprocess``."""

    bin: Path

    def fairseq_train(self, name: str, *arguments: object) -> Path:
        """Train with the options that all benchmarks share; return the last checkpoint."""
        last = self.work / name / "checkpoint_last.pt"
        if not last.exists():  # deleted after its evaluation, whose result was not stored
            (self.work / "seconds" / f"{name}.json").unlink(missing_ok=True)
        self.run(
            name, "fairseq-train", self.bin, "--cpu", "--optimizer", "adam", "--adam-betas", "(0.9,0.98)",
            "--no-epoch-checkpoints", "--num-workers", 0, "--log-format", "simple", "--log-interval", 50, "--save-dir",
            self.work / name, *arguments,
        )  # fmt: skip
        return last

    def translation(self, name: str, *arguments: object) -> Path:
        common = ("--share-all-embeddings", "--label-smoothing", 0.1, "--max-tokens", 4096)
        return self.fairseq_train(name, *common, *arguments)

    def search(
        self, name: str, checkpoint: Path, model: Path, limits: dict[str, float], sentences: int, iterations: int
    ) -> dict[str, dict[str, Any]]:
        """Search under several latency limits; return name of a limit -> best network."""
        folder = self.work / name
        flags = [word for limit in limits.values() for word in ("--limit", f"latency_ms={limit}")]
        self.run(
            name, "nas-ext", "search", "--checkpoint", checkpoint, "--data", self.bin, "--latency-model", model, *flags,
            "--out", folder, "--valid-samples", sentences, "--strategy", "evolution", "--set",
            f"iterations={iterations}", "--set", "population=40",
        )  # fmt: skip
        finalists = read_json(folder / "finalists.json")["finalists"]
        best = {}
        for label, limit in limits.items():
            in_limit = [entry for entry in finalists if any(str(limit) in search for search in entry["best_of"])]
            over_limit = [entry for entry in finalists if any(str(limit) in search for search in entry["over_limit"])]
            entry = (in_limit or over_limit)[0]
            best[label] = {**entry, "limit_ms": limit, "file": folder / entry["file"]}
        return best

    def bleu(self, name: str, checkpoint: Path) -> float:
        """Return test BLEU (beam 4, length penalty 0.6)."""
        from sacrebleu.metrics import BLEU

        output = self.run(
            f"generate-{name}", "fairseq-generate", self.bin, "--user-dir", USER_DIR, "--path", checkpoint, "--beam", 4,
            "--lenpen", 0.6, "--remove-bpe", "sentencepiece", "--max-tokens", 4000, "--cpu", "--max-len-a", 1.5,
            "--max-len-b", 10,
        )  # fmt: skip
        targets = dict(re.findall(r"^T-(\d+)\t(.*)$", output, re.M))
        outputs = {key: text for key, _, text in re.findall(r"^H-(\d+)\t(\S+)\t(.*)$", output, re.M)}
        return float(BLEU().corpus_score([outputs[key] for key in targets], [list(targets.values())]).score)

    def subnet(self, name: str, checkpoint: Path, architecture: Path) -> Path:
        out = self.work / "subnets" / f"{name}.pt"
        self.run(
            f"extract-{name}", "nas-ext", "extract", "--checkpoint", checkpoint, "--data", self.bin, "--arch",
            architecture, "--out", out,
        )  # fmt: skip
        return out


def schedule(updates: int, warm_up: int | None = None) -> tuple[object, ...]:
    """Return options of a learning rate with warmup and decay to 0 at the last update."""
    return ("--lr-scheduler", "polynomial_decay", "--warmup-updates", warm_up or max(1, updates // 10),
            "--total-num-update", updates, "--max-update", updates)  # fmt: skip


def export_images(images: Path, split: str, folder: Path, indices: Iterable[int] | None = None) -> Path:
    """Write images of a file to ``folder/split``, one folder per class; return ``folder``.

    Args:
        indices: images to write; default: all.
    """
    target = folder / split
    if not target.exists():
        unfinished = folder / f"{split}.unfinished"
        with np.load(images, allow_pickle=False) as table:
            data, labels, names = table["data"], table["label"], table["classes"]
            offsets = table["offset"].tolist()
        for index in range(len(labels)) if indices is None else indices:
            file = unfinished / str(names[labels[index]]) / f"{index}.jpg"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data[offsets[index] : offsets[index + 1]].tobytes())
        unfinished.rename(target)
    return folder
