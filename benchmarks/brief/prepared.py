"""What benchmarks at a small size need and a clone has not: a translation corpus and a trained subnet.

``python -m benchmarks.brief.prepared DIR`` draws short sentences from the templates of the quickstart, preprocesses
them into ``DIR/bin``, trains a small supernet for some updates, enough that most translations end, and extracts its
largest network into ``DIR/subnets/largest.pt``. What is done is not done again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.parts.trained.translation_runs import USER_DIR, TranslationRuns
from fairseq_ext.quickstart.corpus import corpus
from nas_core.space import get_space

__all__ = ["main"]

SPACE = "hat_small"
SENTENCES = {"train": 4000, "valid": 100, "test": 200}
UPDATES = 80


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--updates", type=int, default=UPDATES)
    options = parser.parse_args(argv)
    runs = TranslationRuns(options.folder / "bin", options.folder, 1)
    options.folder.mkdir(parents=True, exist_ok=True)
    if not (runs.bin / "dict.de.txt").exists():
        _preprocess(runs)
    checkpoint = runs.fairseq_train(
        "supernet", "--user-dir", USER_DIR, "--task", "supernet_translation", "--arch", "mos_transformer", "--mos",
        "none", "--search-space", SPACE, "--sampling", "sandwich", "--criterion",
        "fused_label_smoothed_cross_entropy", "--lr", 3e-3, "--lr-scheduler", "inverse_sqrt", "--warmup-updates", 20,
        "--max-tokens", 1024, "--max-update", options.updates, "--disable-validation", "--seed", 1,
    )  # fmt: skip
    file = options.folder / "largest.json"
    get_space(SPACE).largest().save(file)
    print(runs.subnet("largest", checkpoint, file))


def _preprocess(runs: TranslationRuns) -> None:
    for split, pairs in corpus(SENTENCES, words=0.5, clauses=1).items():
        for side, suffix in enumerate(("en", "de")):
            (runs.work / f"{split}.{suffix}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    files = [word for split in SENTENCES for word in (f"--{split}pref", runs.work / split)]
    runs.run(
        "preprocess", "fairseq-preprocess", "--source-lang", "en", "--target-lang", "de", "--joined-dictionary", *files,
        "--destdir", runs.bin, "--workers", 1,
    )  # fmt: skip


if __name__ == "__main__":
    main()
