"""Compression of a trained network: prune to a latency limit, repair, select, distill."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from nas_core.checks import SEEDS, Range, check_fields
from nas_core.compression.candidates import Candidate, Fitting
from nas_core.compression.host import Compressible
from nas_core.compression.repair import Repair
from nas_core.compression.training import distill, evaluate, lr_of
from nas_core.errors import ConfigError
from nas_core.latency.protocol import TimingConfig, measure, time_passes_ms
from nas_core.progress import progress_bar
from nas_core.random_streams import own_streams
from nas_core.space import Architecture
from nas_core.supernet.elastic.ablation import depth_order, mean_loss
from nas_core.supernet.elastic.conversion import check_difference, check_output
from nas_core.supernet.elastic.importance import CRITERIA, importance
from nas_core.supernet.elastic.sorting import sort_axes

_LOGGED = 3
"""Number of the best candidates in the log."""
_LIMIT_SHARE = 0.97
"""Fraction of the limit that candidates may use, because measurements vary by some percent."""
_NEAR, _REPEATS = 0.1, 40
"""Relative distance from the limit within which latencies are measured again, and number of repetitions for that."""


@dataclass(frozen=True, kw_only=True)
class CompressConfig:
    """Settings of a compression."""

    updates: int = 2000
    """Number of updates."""
    batch_size: int = 64
    """Number of samples per update."""
    lr: float | None = None
    """Highest learning rate of AdamW; default: 0.2 / channels of the trained network."""
    weight_decay: float = 0.01
    """Weight decay of AdamW."""
    clip_norm: float = 1.0
    """Largest gradient norm."""
    distill_weight: float = 0.5
    """Weight, from 0 to 1, of the loss against the trained network's probabilities; the rest is the loss against
    targets. Sentence encoders are trained by their features alone.
    """
    distill_features: float = 4.0
    """Weight of the loss against the trained network's features, the inputs of the output layer: 1 - cosine
    similarity.
    """
    importance: str = "activation"
    """Criterion by which heads, hidden units and channels are kept: activation, weight or none."""
    calibration_batches: int = 8
    """Number of training batches for importance, order of layers and repair."""
    repair: bool = True
    """Before training, refit layers by least squares to compensate for removed parts."""
    valid_samples: int = 2000
    """Number of validation samples; one half selects candidates, the other half is reported."""
    latency_batch: int = 1
    """Batch size of latency measurements."""
    threads: int = 1
    """Number of CPU threads of latency measurements."""
    device: str = "cpu"
    """Device of training and latency measurements."""
    seed: int = 1
    """Seed for the order of training data."""

    def __post_init__(self) -> None:
        above, share = Range(0, exclude=(0,)), Range(0, 1)
        check_fields(
            self,
            ranges={
                "updates": Range(1), "batch_size": Range(1), "lr": above, "weight_decay": Range(0), "clip_norm": above,
                "distill_weight": share, "distill_features": Range(0),
                "calibration_batches": Range(1), "valid_samples": Range(2),
                "latency_batch": Range(1), "threads": Range(1), "seed": SEEDS,
            },
        )  # fmt: skip
        if self.importance not in CRITERIA:
            raise ConfigError(f"importance is {self.importance!r}; expected one of {', '.join(CRITERIA)}")


@dataclass(frozen=True)
class Row:
    """Row of the table of results: one network."""

    name: str
    metrics: dict[str, float]
    """``loss`` and the host framework's metrics, on validation samples that did not select candidates."""
    share: float
    """Latency as a fraction of the trained network's."""
    latency_ms: float
    updates: int
    """0: before training, or with the weights before it because training raised the loss or diverged."""


@dataclass(frozen=True)
class CompressionResult:
    """Result of a compression."""

    rows: tuple[Row, ...]
    """Trained network; before training, the best candidate with only removed layers, if there is one, and the selected
    candidate, if it is another; compressed network.
    """
    architecture: Architecture
    parameters: int


class Compression:
    """Steps of the compression of a trained network; :func:`compress` runs them."""

    def __init__(self, trained: Compressible, config: CompressConfig, log: Callable[[str], None] = print) -> None:
        self.trained, self.config, self.log = trained, config, log
        clock = "cpu" if config.device == "cpu" and config.threads == 1 else "wall"
        self.timing = TimingConfig(clock=clock, threads=config.threads, device=config.device)
        held_out = list(trained.held_out(config.valid_samples))
        self.calibration = trained.calibration(config.calibration_batches)
        check_difference(trained, trained.net)
        self.selection, self.reported = held_out[::2], held_out[1::2]
        net, largest = trained.net, trained.space.largest()
        axes = trained.form.axes(net)
        sort_axes(
            net,
            axes,
            importance(
                net, axes, config.importance, self.calibration, lambda b: trained.loss(net, net.select(largest), b)
            ),
        )
        self.sides = trained.form.sides(net)
        self.teacher = trained.static(largest).eval()
        self.repair = Repair(trained, self.teacher, self.calibration)
        self._reference = trained.workload(trained.original, config.latency_batch)
        self.latency_ms = float(np.median(time_passes_ms(self._reference, self.timing)))
        self._self_share = 1.0
        self._self_share = self.share(trained.original, _REPEATS)  # below 1 on a busy machine
        self._shares: dict[Architecture, float] = {}
        self._precise: set[Architecture] = set()

    def share(self, model: nn.Module, repeats: int = 10) -> float:
        """Return the latency of a model as a fraction of the original model's, both measured alternately."""
        timing = TimingConfig(**{**asdict(self.timing), "repeats": repeats})
        training = model.training
        workload = self.trained.workload(model.eval(), self.config.latency_batch)
        relative = measure(workload, self._reference, timing).relative
        model.train(training)
        return relative / self._self_share

    def fitting(self, limit: float) -> Fitting:
        """Return the reduction to a limit, given as a fraction of the trained network's latency."""
        trained, limit = self.trained, _LIMIT_SHARE * limit

        def measured(architecture: Architecture) -> float:
            share = self._shares.get(architecture)
            if share is None or (abs(share / limit - 1) < _NEAR and architecture not in self._precise):
                model = trained.static(architecture)
                share = self.share(model) if share is None else share
                if abs(share / limit - 1) < _NEAR:
                    self._precise.add(architecture)
                    share = self.share(model, _REPEATS)
                self._shares[architecture] = share
            return share

        return Fitting(trained.space, measured, limit, trained.multiples)

    def build(self, candidate: Candidate, repaired: bool = True) -> Any:
        """Return the static network of a candidate, repaired if the settings say so."""
        self.trained.form.set_order(self.trained.net, {
            side: (*kept, *(layer for layer in range(self.sides[side]) if layer not in kept))
            for side, kept in candidate.layers.items()
        })  # fmt: skip
        model = self.trained.static(candidate.architecture)
        self.trained.form.set_order(self.trained.net, {side: tuple(range(n)) for side, n in self.sides.items()})
        if repaired and self.config.repair:
            self.repair(model, candidate.layers)
        return model

    def candidates(self, limit: float) -> list[Candidate]:
        """Return the candidates by their losses after repair, best first.

        Args:
            limit: largest latency, as a fraction of the trained network's.

        Raises:
            ConfigError: no network meets the limit.
        """
        trained, fitting = self.trained, self.fitting(limit)
        drops = fitting.drops(self.sides)
        order = depth_order(self.sides, lambda layers: mean_loss(self.trained, layers, self.calibration))
        drop_keys = [(drop.architecture, drop.layers) for drop in drops]
        mixed = [c for c in fitting.mixed(self.sides, order) if (c.architecture, c.layers) not in drop_keys]
        if not drops and not mixed:
            smallest = min(self._shares.values())
            raise ConfigError(
                f"no network meets the limit of {limit:.0%} of the trained network's latency; the fastest has"
                f" {smallest:.0%}; give a higher --limit"
            )
        self.log(f"{len(drops)} networks by layer dropping and {len(mixed)} others within {limit:.0%} of the latency")
        losses: list[tuple[float, Candidate]] = []
        with progress_bar("evaluating candidates", len(drops) + len(mixed), "network") as advance:
            for candidate in (*drops, *mixed):
                losses.append((evaluate(trained, self.build(candidate), self.selection)["loss"], candidate))
                advance(1)
        losses.sort(key=lambda pair: (math.isnan(pair[0]), pair[0]))
        for loss, candidate in losses[:_LOGGED]:
            self.log(f"loss {loss:.3f} before training: {candidate.name}")
        return [candidate for _, candidate in losses]

    def train(self, model: Any) -> int:
        """Train a static network, and restore its weights if the loss on ``selection`` rose or training diverged.

        Returns:
            Number of updates; 0 for restored weights.
        """
        before = evaluate(self.trained, model, self.selection)["loss"]
        weights = {name: value.clone() for name, value in model.state_dict().items()}
        with own_streams(self.config.seed, self.config.device):
            updates = distill(self.trained, model, self.teacher, self.config)
        diverged = updates < self.config.updates
        after = before if diverged else evaluate(self.trained, model, self.selection)["loss"]
        if not diverged and (after <= before or math.isnan(before)):
            return updates
        model.load_state_dict(weights)
        cause = f"diverged at update {updates + 1}" if diverged else f"raised the loss from {before:.3f} to {after:.3f}"
        lr = lr_of(self.trained, self.config)
        self.log(f"training {cause}, so the weights before training are kept; give an --lr below {lr:.2g}")
        return 0

    def row(self, name: str, model: nn.Module, updates: int = 0) -> Row:
        share = 1.0 if model is self.trained.original else self.share(model, _REPEATS)
        metrics = evaluate(self.trained, model, self.reported)
        return Row(name, metrics, share, share * self.latency_ms, updates)


def compress(
    trained: Compressible,
    path: str | Path,
    *,
    share: float | None = None,
    latency_ms: float | None = None,
    config: CompressConfig | None = None,
    log: Callable[[str], None] = print,
) -> CompressionResult:
    """Compress a trained network below a latency limit and save it as a checkpoint of the host framework.

    Args:
        trained: network opened by :func:`nas_core.supernet.host.open_trained`.
        path: checkpoint to write.
        share: latency limit as a fraction of the original model's.
        latency_ms: latency limit in ms, instead of ``share``.

    Raises:
        ConfigError: settings are invalid, the file exists, or no network meets the limit.
        DataError: there is no data.
    """
    path = Path(path)
    check_output(path, "--out")
    if (share is None) == (latency_ms is None):
        raise ConfigError("got both or none of share and latency_ms; expected one of them")
    compression = Compression(trained, config or CompressConfig(), log)
    share = (latency_ms or 0) / compression.latency_ms if share is None else share
    if not 0 < share < 1:
        raise ConfigError(
            f"the limit is {share:.0%} of the trained network's latency, {compression.latency_ms:.3g} ms; give one"
            " above 0 and below 100%"
        )
    log(f"trained network: {compression.latency_ms:.3g} ms; limit {share * compression.latency_ms:.3g} ms")
    candidates = compression.candidates(share)
    best = candidates[0]
    rows = [compression.row("trained network", trained.original)]
    drop = next((candidate for candidate in candidates if candidate.is_drop), best)
    for candidate in (best,) if drop is best else (drop, best):
        model = compression.build(candidate)
        rows.append(compression.row(candidate.name, model))
    rows.append(compression.row(best.name, model, compression.train(model)))
    if rows[-1].share > share:
        log(
            f"{best.name}: {rows[-1].share:.1%} of the latency in the final measurement, above the limit of"
            f" {share:.1%}; give a lower --limit, or repeat on an idle machine"
        )
    parameters = trained.save_static(path, model, best.layers)
    return CompressionResult(tuple(rows), best.architecture, parameters)
