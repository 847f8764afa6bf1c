"""Commands that compare supernets with networks trained from scratch."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.parts.runs import TranslationRuns
from nas_core.files.reading import read_json

EXPERTS: dict[str, tuple[str, ...]] = {
    "sandwich": ("--mos", "none"),
    "layer-wise": ("--mos", "layer"),
    "neuron-wise": ("--mos", "neuron"),
}
"""Training by the sandwich rule -> options of ``fairseq-train``."""


@dataclass(frozen=True)
class TrustRuns(TranslationRuns):
    """Supernets and standalone networks of one space."""

    space: str
    updates: int
    """Updates of standalone networks, and of supernets unless others are given."""
    networks: int
    """Standalone networks."""

    examples: ClassVar[tuple[object, ...]] = ()
    """Options of the studies that select validation examples; default: all."""

    @abstractmethod
    def supernet(self, method: str, seed: int, updates: int) -> Path:
        """Return the checkpoint of one training."""

    @property
    @abstractmethod
    def first(self) -> str:
        """Method whose supernet of the first seed gives the standalone networks their settings."""

    def standalone(self) -> Path:
        """Return the file of the networks trained from scratch."""
        checkpoint = self.supernet(self.first, 1, self.updates)
        self.study("gap", "standalone", checkpoint, *self.examples, "--set", f"architectures={self.networks}")
        return self.work / "gap" / "standalone" / "standalone.jsonl"

    def row(self, method: str, seed: int, routed: bool, updates: int | None = None) -> dict[str, Any]:
        """Return the figures of one supernet, with those of its routers if ``routed``."""
        checkpoint = self.supernet(method, seed, updates or self.updates)
        label, examples = checkpoint.parent.name, self.examples
        gap = self.study("gap", label, checkpoint, *examples, "--set", f"standalone={self.standalone()}")
        conflict = self.study("conflict", label, checkpoint, *examples, "--set", "batches=8")["summary"][0]
        routing = self.study("routing", label, checkpoint, *examples)["summary"][0] if routed else None
        figures, inherited = gap["summary"][0], [row["inherited"] for row in gap["rows"]]
        return {
            "method": method, "seed": seed, "error": figures["error"], "tau": figures["tau"], "bias": figures["bias"],
            "inherited_loss": sum(inherited) / len(inherited), "inherited": inherited,
            "conflict": {name: conflict[name] for name in ("smallest", "mean")},
            "routing": {name: routing[name] for name in ("extremes", "mean")} if routing else None,
        }  # fmt: skip

    def further(self, method: str, seed: int, updates: int, networks: int, every: int, most: int) -> dict[str, Any]:
        """Return the further updates that subnets of one supernet need to be as good as standalone."""
        checkpoint = self.supernet(method, seed, updates)
        settings = {
            "standalone": self.standalone(), "architectures": networks, "every": every, "most_updates": most
        }  # fmt: skip
        words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        result = self.study("close-gap", checkpoint.parent.name, checkpoint, *self.examples, *words)
        (summary,) = result["summary"]
        return {
            "method": method, "seed": seed, "updates": summary["updates"], "reached": summary["reached"],
            "networks": [{name: row[name] for name in ("inherited", "standalone", "updates")}
                         for row in result["rows"]],
        }  # fmt: skip

    def networks_alone(self) -> list[dict[str, Any]]:
        """Return size, loss and genes of each standalone network."""
        gap = read_json(self.work / "gap" / "standalone" / "gap.json")
        return [
            {"params_m": row["params_m"], "loss": row["standalone"], "genes": gap["architectures"][row["architecture"]]}
            for row in gap["rows"]
        ]
