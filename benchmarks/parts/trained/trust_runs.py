"""Commands of a benchmark that asks supernets for the loss of networks that are also trained from scratch."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.parts.trained.translation_runs import TranslationRuns
from nas_core.files.reading import read_json

EXPERTS: dict[str, tuple[str, ...]] = {
    "sandwich": ("--mos", "none"),
    "layer-wise": ("--mos", "layer"),
    "neuron-wise": ("--mos", "neuron"),
}
"""How a supernet of the sandwich rule is trained -> options of ``fairseq-train``."""


@dataclass(frozen=True)
class TrustRuns(TranslationRuns):
    """Supernets and standalone networks of one space; each step writes below ``work``."""

    space: str
    updates: int
    """Updates of every standalone network, and of every supernet that is not asked for with others."""
    networks: int
    """Standalone networks."""

    examples: ClassVar[tuple[object, ...]] = ()
    """Options of the studies that say which validation examples are taken; default: all."""

    @abstractmethod
    def supernet(self, method: str, seed: int, updates: int) -> Path:
        """The checkpoint of one training."""

    @property
    @abstractmethod
    def first(self) -> str:
        """The method whose supernet of the first seed gives the standalone networks their settings."""

    def study(self, name: str, label: str, checkpoint: Path, *arguments: object) -> dict[str, Any]:
        """What a study wrote about one checkpoint."""
        out = self.work / name / label
        if not (out / f"{name}.json").exists():
            words = ("--checkpoint", checkpoint, "--out", out, *self.examples, *arguments)
            self.run(f"{name}-{label}", "nas-ext", "lab", "study", name, *words)
        content: dict[str, Any] = read_json(out / f"{name}.json")
        return content

    def standalone(self) -> Path:
        """The results of the networks that are trained from scratch."""
        self.study(
            "gap", "standalone", self.supernet(self.first, 1, self.updates), "--set", f"architectures={self.networks}"
        )
        return self.work / "gap" / "standalone" / "standalone.jsonl"

    def row(self, method: str, seed: int, routed: bool, updates: int | None = None) -> dict[str, Any]:
        """The figures of one supernet; those of routers where it has some."""
        checkpoint = self.supernet(method, seed, updates or self.updates)
        label = checkpoint.parent.name
        gap = self.study("gap", label, checkpoint, "--set", f"standalone={self.standalone()}")
        conflict = self.study("conflict", label, checkpoint, "--set", "batches=8")["summary"][0]
        routing = self.study("routing", label, checkpoint)["summary"][0] if routed else None
        found, inherited = gap["summary"][0], [each["inherited"] for each in gap["rows"]]
        return {
            "method": method, "seed": seed, "error": found["error"], "tau": found["tau"], "bias": found["bias"],
            "inherited_loss": sum(inherited) / len(inherited), "inherited": inherited,
            "conflict": {name: conflict[name] for name in ("smallest", "mean")},
            "routing": {name: routing[name] for name in ("extremes", "mean")} if routing else None,
        }  # fmt: skip

    def further(self, method: str, seed: int, updates: int, networks: int, schedule: tuple[int, int]) -> dict[str, Any]:
        """How many updates subnets of one supernet need until they are as good as standalone.

        ``networks`` of them are trained, evaluated after every ``schedule[0]`` updates, ``schedule[1]`` at most.
        """
        checkpoint = self.supernet(method, seed, updates)
        found = self.study(
            "close-gap", checkpoint.parent.name, checkpoint, "--set", f"standalone={self.standalone()}", "--set",
            f"architectures={networks}", "--set", f"every={schedule[0]}", "--set", f"most_updates={schedule[1]}",
        )  # fmt: skip
        names = ("inherited", "standalone", "updates")
        return {
            "method": method, "seed": seed, "updates": found["summary"][0]["updates"],
            "reached": found["summary"][0]["reached"],
            "networks": [{name: each[name] for name in names} for each in found["rows"]],
        }  # fmt: skip

    def networks_alone(self) -> list[dict[str, Any]]:
        """Size, loss, genes and training time of each standalone network."""
        gap = read_json(self.work / "gap" / "standalone" / "gap.json")
        return [
            {"params_m": each["params_m"], "loss": each["standalone"],
             "genes": gap["architectures"][each["architecture"]]}
            for each in gap["rows"]
        ]  # fmt: skip
