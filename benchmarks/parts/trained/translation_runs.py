"""Commands of a translation benchmark, each run once: training, extraction, BLEU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from nas_core.files.reading import read_json
from nas_core.files.writing import write_json

USER_DIR = Path(__file__).parents[3] / "fairseq_ext"


@dataclass(frozen=True)
class TranslationRuns:
    """Where things are. Each step writes below ``work`` and is skipped when its file exists."""

    bin: Path
    """Preprocessed corpus."""
    work: Path
    """Everything made on the way."""
    threads: int
    """Processor threads of each command."""

    def run(self, name: str, command: str, *arguments: object) -> str:
        """One command with its log; returns the log."""
        log = self.work / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        line = [str(Path(sys.executable).parent / command), *map(str, arguments)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads)}
        start = time.monotonic()
        with open(log, "w", encoding="utf-8") as file:
            file.write("$ " + " ".join(line) + "\n")
            file.flush()
            code = subprocess.run(line, stdout=file, stderr=subprocess.STDOUT, env=environment, check=False).returncode
        content = log.read_text(encoding="utf-8")
        if code:
            raise SystemExit(f"{name} failed, see {log}:\n{content[-800:]}")
        times = self.work / "seconds" / f"{name}.json"
        write_json(times, {"seconds": round(time.monotonic() - start, 1), "threads": self.threads})
        return content

    def fairseq_train(self, name: str, *arguments: object) -> Path:
        """``fairseq-train`` on the corpus with what all trainings have in common; the last checkpoint."""
        folder = self.work / name
        done = folder / "done"
        if not done.exists():
            self.run(
                name, "fairseq-train", self.bin, "--cpu", "--share-all-embeddings", "--label-smoothing", 0.1,
                "--optimizer", "adam", "--adam-betas", "(0.9,0.98)", "--max-tokens", 4096, "--no-epoch-checkpoints",
                "--num-workers", 0, "--log-format", "simple", "--log-interval", 50, "--save-dir", folder, *arguments,
            )  # fmt: skip
            done.touch()
        return folder / "checkpoint_last.pt"

    def bleu(self, name: str, checkpoint: Path) -> float:
        """Test BLEU (beam 4, length penalty 0.6)."""
        from sacrebleu.metrics import BLEU

        result = self.work / "bleu" / f"{name}.json"
        if not result.exists():
            output = self.run(
                f"generate-{name}", "fairseq-generate", self.bin, "--user-dir", USER_DIR, "--path", checkpoint,
                "--beam", 4, "--lenpen", 0.6, "--remove-bpe", "sentencepiece", "--max-tokens", 4000, "--cpu",
                "--max-len-a", 1.5, "--max-len-b", 10,
            )  # fmt: skip
            targets = dict(re.findall(r"^T-(\d+)\t(.*)$", output, re.M))
            found = {key: text for key, _, text in re.findall(r"^H-(\d+)\t(\S+)\t(.*)$", output, re.M)}
            metric = BLEU()
            score = metric.corpus_score([found[key] for key in targets], [[targets[key] for key in targets]])
            content = {"bleu": score.score, "sentences": len(targets), "signature": str(metric.get_signature())}
            write_json(result, content)
        return float(read_json(result)["bleu"])

    def subnet(self, name: str, checkpoint: Path, architecture: Path) -> Path:
        """The static network of an architecture file, taken out of a supernet."""
        out = self.work / "subnets" / f"{name}.pt"
        if not out.exists():
            self.run(
                f"extract-{name}", "nas-ext", "extract", "--checkpoint", checkpoint, "--data", self.bin,
                "--arch", architecture, "--out", out,
            )  # fmt: skip
        return out
