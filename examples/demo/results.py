"""What a run has found: its subnets, their latencies, losses and translations, as one dictionary."""

from __future__ import annotations

import json
import logging
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.demo import translate
from examples.demo.page import shape
from examples.demo.settings import Settings
from nas_core.files import read_json, write_atomic
from nas_core.latency import load_latency_model
from nas_core.latency.by_genes import LatencyDataset
from nas_core.models import params_m
from nas_core.report import read_run
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet import open_supernet

EXAMPLES = 6


@dataclass(frozen=True)
class Subnet:
    """One architecture of the table."""

    name: str
    architecture: Architecture
    limit_ms: float | None = None

    @property
    def key(self) -> str:
        return self.architecture.key


def chosen(search: Path, limits: Sequence[float], space: SearchSpace) -> list[Subnet]:
    """The smallest, the best under each limit (where all were measured above it, the fastest of them, named so), and
    the largest architecture; none twice."""
    found = [Subnet("smallest", space.smallest())]
    finalists = read_run(search).finalists
    for limit in limits:
        name = f"latency_ms<={limit:g}"
        best = [finalist for finalist in finalists if name in finalist["best_of"]]
        above = [finalist for finalist in finalists if name in finalist["over_limit"]]
        for finalist in best or sorted(above, key=lambda one: float(one["measured"]["latency_ms"]))[:1]:
            label = f"≤ {limit:g} ms" if best else f"≤ {limit:g} ms, missed"
            found.append(Subnet(label, Architecture(finalist["genes"]), limit))
    found.append(Subnet("largest", space.largest()))
    return list({subnet.key: subnet for subnet in reversed(found)}.values())[::-1]


def inherited_losses(out: Path, subnets: Sequence[Subnet], sentences: int, device: str) -> dict[str, float]:
    """Validation loss of each subnet with the supernet's weights: the search's own, computed for those it never met."""
    known = {e["key"]: e["metrics"]["loss"] for e in read_run(out / "search").evaluations if e["metrics"].get("loss")}
    checkpoint = out / "supernet" / "checkpoint_best.pt"
    with _quiet():
        supernet = open_supernet(checkpoint, data=str(out / "bin"), valid_sentences=sentences, device=device)
        return {s.key: known.get(s.key) or supernet.evaluate(s.architecture)["loss"] for s in subnets}


@contextmanager
def _quiet() -> Iterator[None]:
    """Importing fairseq makes every package's logging verbose; here it is silenced and undone."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        root.setLevel(level)
        root.handlers[:] = handlers


def save_translations(generated: str, out: Path, key: str, about: Mapping[str, Any]) -> None:
    """Keep the translations of one subnet as plain text, in the order of the test set."""
    lines = translate.hypotheses(generated, out / "corpus", about["pairs"]["test"])
    write_atomic(out / "subnets" / f"{key}.hyp", "".join(f"{line}\n" for line in lines))


def gather(
    out: Path,
    settings: Settings,
    about: Mapping[str, Any],
    subnets: Sequence[Subnet],
    space: SearchSpace,
    times: Mapping[str, float],
    seconds: float,
) -> dict[str, Any]:
    """Everything for ``results.json``: ``facts``, ``subnets`` (the table), ``examples``, ``stages_s``."""
    run = read_run(out / "search")
    losses = read_json(out / "subnets" / "losses.json")
    model = load_latency_model(out / "latency.json", "genes", space)
    dataset = LatencyDataset.read(out / "latency.jsonl")
    measured = dict(zip((r["key"] for r in dataset.records), dataset.data().latency_ms.tolist(), strict=True))
    measured |= {f["key"]: f["measured"]["latency_ms"] for f in run.finalists if f["measured"].get("latency_ms")}
    references = translate.read_lines(out / "corpus" / "raw" / f"test.{about['target']}")
    sources = translate.read_lines(out / "corpus" / "raw" / f"test.{about['source']}")
    outputs, rows, signature = {}, [], ""
    for subnet in subnets:
        outputs[subnet.name] = translate.read_lines(out / "subnets" / f"{subnet.key}.hyp")
        score, signature = translate.bleu(outputs[subnet.name], references)
        rows.append(
            {
                "name": subnet.name,
                "shape": shape(subnet.architecture),
                "params_m": params_m(subnet.architecture),
                "predicted_ms": float(model.predict(subnet.architecture)[0]),
                "measured_ms": measured.get(subnet.key),
                "loss": losses[subnet.key],
                "bleu": score,
                "limit_ms": subnet.limit_ms,
                "key": subnet.key,
                "genes": subnet.architecture.to_dict(),
            }
        )
    shown = translate.telling_examples(outputs, references, EXAMPLES)
    training = training_losses(out / "logs" / "train.log")
    updates = int(max(training["updates"], default=0))
    return {
        "facts": _facts(
            settings, about, space, model.info["metrics"], dataset, updates, len(run.evaluations), times, seconds
        ),
        "bleu_signature": signature,
        "subnets": rows,
        "latency_model": model.info["metrics"],
        "stages_s": {name: round(value, 1) for name, value in times.items()},
        "settings": settings.identity(),
        "training": training,
        "examples": [
            {
                "source": sources[index],
                "reference": references[index],
                "outputs": {name: lines[index] for name, lines in outputs.items()},
            }
            for index in shown
        ],
    }


def _facts(
    settings: Settings,
    about: Mapping[str, Any],
    space: SearchSpace,
    quality: Mapping[str, float],
    dataset: LatencyDataset,
    updates: int,
    evaluations: int,
    times: Mapping[str, float],
    seconds: float,
) -> dict[str, Any]:
    experts = "no experts" if settings.mos == "none" else f"{settings.experts} experts mixed per {settings.mos}"
    where = str(settings.data) if settings.data else "built-in grammar"
    tau = "unknown" if quality["kendall_tau"] is None else f"{quality['kendall_tau']:.3f}"
    clock = "processor time of " if dataset.settings["timing"]["clock"] == "cpu" else ""
    name = dataset.machine.get("device_name", platform.machine())
    return {
        "corpus": f"{about['source']} to {about['target']} from {where}, {about['pairs']['train']:,} training pairs",
        "search space": f"{space.name} ({space.cardinality():,} architectures)",
        "experts": experts,
        "training": f"{updates:,} updates in {times.get('train', 0) / 60:.1f} minutes, sampling {settings.sampling}",
        "latency model": f"MAPE {quality['mape_percent']:.1f} %, Kendall's tau {tau} on held-out architectures",
        "search": f"{evaluations} architectures evaluated in {times.get('search', 0):.0f} s",
        "test sentences": f"the {about['pairs']['test']} sentences of {about['test_set']}",
        "latency of": f"one sentence of {about['source_length']} tokens, {about['target_length']} steps, beam"
        f" {settings.beam}, {clock}{settings.latency_threads} thread(s) of {name}",
        "wall time": f"{seconds / 60:.1f} minutes",
    }


def training_losses(log: Path) -> dict[str, list[float]]:
    """What training reported at each validation: ``updates``, ``smallest``, ``largest``; losses in bits per token."""
    found: dict[str, list[float]] = {"updates": [], "smallest": [], "largest": []}
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []:
        _, _, content = line.partition(" | valid | ")
        if content.startswith("{"):
            values = json.loads(content)
            found["updates"].append(float(values["valid_num_updates"]))
            for name in ("smallest", "largest"):
                found[name].append(float(values.get(f"valid_{name}_loss", "nan")))
    return found
