"""Supernets converted from a trained network in several ways."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts.runs import Runs
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json
from nas_core.models import params_m
from nas_core.space import Architecture


@dataclass(frozen=True)
class Variant:
    """Options of a conversion."""

    name: str
    converted: bool = True
    importance: str = "activation"
    """Criterion that sorts channels and heads."""
    teacher: bool = True


FULL = Variant("sorted, with teacher")
ABLATIONS = (
    FULL,
    Variant("sorted, without teacher", teacher=False),
    Variant("not sorted, with teacher", importance="none"),
    Variant("not sorted, without teacher", importance="none", teacher=False),
    Variant("from random weights", converted=False, importance="none", teacher=False),
)


def slug(name: str) -> str:
    """Return a file name for a variant or network."""
    return name.replace(", ", "-").replace(" ", "_")


class ConvertedRuns(Runs):
    """Conversion of a trained network to supernets, their training and evaluation."""

    @abstractmethod
    def trained_checkpoint(self) -> Path:
        """Return the checkpoint of the trained network."""

    @abstractmethod
    def train_supernet(self, name: str, variant: Variant, updates: int, seed: int) -> Path:
        """Return the checkpoint of a trained supernet."""

    def convert(self, variant: Variant, *options: object) -> Path:
        """Return the converted supernet; its search space is in a ``.yml`` file of the same name."""
        name = f"converted-{variant.importance}"
        path = self.work / f"{name}.pt"
        calibration_batches = () if variant.importance == "none" else ("--calibration-batches", 16)
        self.run(
            name, "nas-ext", "elastic", "--checkpoint", self.trained_checkpoint(), "--out", path, "--space-out",
            path.with_suffix(".yml"), "--importance", variant.importance, *calibration_batches, *options,
        )  # fmt: skip
        return path

    def converted_supernet(self, variant: Variant) -> Path:
        """Return the converted supernet, with the options of the benchmark."""
        return self.convert(variant)

    def supernet(self, variant: Variant, updates: int, seed: int) -> Path:
        """Return the supernet after a number of updates."""
        if not updates:
            return self.converted_supernet(variant)
        return self.train_supernet(f"{slug(variant.name)}-{updates}-{seed}", variant, updates, seed)

    def rows(
        self, variant: Variant, updates: int, seed: int, subnets: Mapping[str, Architecture], metric: str,
        **options: Any,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Return a row per subnet with its metric by supernet weights.

        Args:
            options: options of :func:`nas_core.supernet.open_supernet`.
        """
        from nas_core.supernet import open_supernet

        file = self.work / "metrics" / f"{slug(variant.name)}-{updates}-{seed}.json"
        if not file.exists():
            supernet = open_supernet(self.supernet(variant, updates, seed), **options)
            write_json(file, {name: supernet.evaluate(network)[metric] for name, network in subnets.items()})
        rows = [
            {"supernet": variant.name, "updates": updates, "seed": seed, "subnet": name,
             "params_m": round(params_m(subnets[name]), 3), metric: value}
            for name, value in read_json(file).items()
        ]  # fmt: skip
        print(*map(json.dumps, rows), sep="\n", flush=True)
        return rows
