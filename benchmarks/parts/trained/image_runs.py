"""Commands of measurements on CIFAR-10, each run once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.parts.published import DATA

TRAIN, TEST = DATA / "cifar10_jpeg_train.npz", DATA / "cifar10_jpeg_test.npz"


@dataclass(frozen=True)
class ImageRuns:
    """Where things are. Each step writes below ``work`` and is skipped when it is done."""

    work: Path
    threads: int

    def run(self, name: str, *words: object) -> None:
        """A command with its log, unless it was finished before."""
        done = self.work / "done" / name
        if done.exists():
            return
        done.parent.mkdir(parents=True, exist_ok=True)
        log, start = self.work / f"{name}.log", time.monotonic()
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads)}
        with open(log, "a", encoding="utf-8") as file:
            code = subprocess.run(
                [*map(str, words)], stdout=file, stderr=subprocess.STDOUT, env=environment, check=False
            ).returncode
        if code:
            raise SystemExit(f"{name} failed, see {log}:\n{log.read_text(encoding='utf-8')[-800:]}")
        done.write_text(f"{time.monotonic() - start:.1f}\n")

    def nas_ext(self, name: str, *words: object) -> None:
        self.run(name, Path(sys.executable).parent / "nas-ext", *words)


def as_folder(images: Path, split: str, folder: Path) -> Path:
    """The images of a file below ``folder/split``, a folder for each class, so that they can be named as a split."""
    place = folder / split
    if not place.exists():
        beside = folder / f"{split}.unfinished"
        with np.load(images, allow_pickle=False) as table:
            data, labels, names = table["data"], table["label"], table["classes"]
            ends = table["offset"].tolist()
        for index, label in enumerate(labels.tolist()):
            file = beside / str(names[label]) / f"{index}.jpg"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data[ends[index] : ends[index + 1]].tobytes())
        beside.rename(place)
    return folder
