"""``python -m timm_ext.train --data .. --model .. --output ..``: training of image models and supernets.

It runs on one device, or on several with torchrun. A resumed run gives the same results as an uninterrupted one.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.task import ClassificationTask
from timm.utils import ModelEmaV3
from tqdm import tqdm

from nas_core.errors import ConfigError, NasExtError
from nas_core.files.writing import write_json
from nas_core.precision import check_precision
from nas_core.space import Architecture
from nas_core.supernet.sampling import sandwich, validation_set
from timm_ext.building import (
    Passes,
    build_model,
    compile_static,
    make_loader,
    make_optimizer,
    make_schedule,
    seed_everything,
)
from timm_ext.checkpoint import load_weights, read_checkpoint, save_checkpoint
from timm_ext.data import ImageSet, open_splits, validation_data
from timm_ext.evaluation import evaluate
from timm_ext.options import TrainConfig, parse
from timm_ext.step import Losses, Step
from timm_ext.trained.distillation import Distillation
from timm_ext.workers import Workers, join, leave

_CHANGEABLE = (
    "device",
    "workers",
    "output",
    "torchcompile",
    "log_interval",
)
"""Settings that may differ in a resumed run."""


class Trainer:
    """Training run.

    Args:
        workers: rank and device of this process; default: from torchrun's environment.
    """

    def __init__(self, config: TrainConfig, workers: Workers | None = None) -> None:
        self.config, self.folder = config, Path(config.output)
        self.workers = workers or join(config.device)
        self.device = self.workers.device
        check_precision(config.precision, self.device)
        self.train_set, self.valid_set = open_splits(
            config.data, config.val_data or None, config.val_count, config.seed, config.train_count
        )
        seed_everything(config.seed, 0)
        self.model = build_model(config, self.train_set.source.classes).to(self.device)
        if config.init:
            path = Path(config.init)
            load_weights(self.model, read_checkpoint(path), path, ema=True)
        mixing = config.mixup > 0 or config.cutmix > 0
        criterion = SoftTargetCrossEntropy() if mixing else LabelSmoothingCrossEntropy(config.smoothing)
        self.task = ClassificationTask(self.model, criterion, device=self.device, verbose=False)
        self.average = ModelEmaV3(self.model, decay=config.ema, use_warmup=True) if config.ema else None
        self.models = [self.model] if self.average is None else [self.model, self.average.module]
        if config.torchcompile:
            compile_static(config.torchcompile, self.models)
        self.passes = Passes(config, self.model, self.train_set, self.workers)
        self.per_epoch = self.passes.updates
        self.distillation: Distillation | None = None
        if config.teacher:
            self.distillation = Distillation(config, self.model, self.device)
        self.updates = config.updates or config.epochs * self.per_epoch
        self.epochs = math.ceil(self.updates / self.per_epoch)
        self.optimizer = make_optimizer(config, self.model)
        self.schedule = make_schedule(config, self.optimizer, self.per_epoch)
        self.step = Step(self.model, self.optimizer, config.precision, config.clip_grad, self.workers)
        self.history: list[dict[str, Any]] = []
        self.epoch = 0

    def run(self) -> dict[str, Any]:
        """Train until the last update; return the metrics of the best epoch."""
        self.resume()
        config = self.config
        validation = validation_data(config.data, config.val_data, config.val_count)
        origin = f"from {validation}" if validation else "held out from the training images"
        self._log(f"{len(self.train_set)} training images, {len(self.valid_set)} validation images {origin}")
        if self.workers.first:
            write_json(self.folder / "settings.json", asdict(self.config))
        while self.epoch < self.epochs:
            loss = self.train_epoch()
            record = {"epoch": self.epoch, "train_loss": loss, **self.validate()}
            improved = record["top1"] > max((past["top1"] for past in self.history), default=-1.0)
            self.history.append(record)
            self.epoch += 1
            if self.workers.first:
                if improved:
                    self.save(self.folder / "best.pt")
                self.save(self.folder / "last.pt")
                write_json(self.folder / "metrics.json", self.history)
            self._log(f"epoch {self.epoch}/{self.epochs}: " + _line(record))
        return max(self.history, key=lambda record: float(record["top1"]))

    def _log(self, text: str) -> None:
        if self.workers.first:
            tqdm.write(text, file=sys.stderr)

    def train_epoch(self) -> float:
        """Train one epoch, at most to the last update; return the mean loss."""
        first_update = self.epoch * self.per_epoch
        count = min(self.per_epoch, self.updates - first_update)
        self.model.train()
        losses = Losses(self.step)
        disable = None if self.workers.first else True
        bar = tqdm(total=count, desc=f"epoch {self.epoch + 1}/{self.epochs}", disable=disable, leave=False)
        for images, labels, update, pass_index, passes in self.passes.epoch(self.epoch, count):
            if self.schedule is not None and not pass_index:
                self.schedule.step_update(update)
            losses.add(update, self.train_step(images, labels, update, pass_index, passes))
            if pass_index + 1 < passes:
                continue
            if self.average is not None:
                self.average.update(self.model, step=update + 1)
            if not (update + 1) % self.config.log_interval:
                bar.set_postfix(loss=f"{losses.read():.3f}", refresh=False)
            bar.update()
        bar.close()
        losses.read()
        return losses.mean

    def train_step(
        self, images: torch.Tensor, labels: torch.Tensor, update: int, pass_index: int = 0, passes: int = 1
    ) -> list[torch.Tensor]:
        """Train an update's architectures on batch ``pass_index`` of ``passes``; after the last, update the weights.

        Returns:
            One loss per architecture; all losses of an update add up to its loss.
        """
        architectures = self.architectures_of(update)
        if not pass_index:
            self.optimizer.zero_grad()
        share = len(architectures) * passes
        forward = partial(self.task, images, labels)
        loss_of = lambda _: forward()["loss"]  # noqa: E731
        if self.distillation is not None:
            architectures = self.distillation.order(architectures)
            self.distillation.start(images)
            loss_of = partial(self.distillation.loss, forward=forward)
        losses = []
        for architecture in architectures:
            context = self.model.use_architecture(architecture) if self.model.is_supernet else nullcontext()
            losses.append(self.step.backward(lambda: loss_of(architecture) / share, context))  # noqa: B023  called now
        if pass_index + 1 == passes:
            self.step.update()
        return losses

    def architectures_of(self, update: int) -> list[Architecture]:
        model = self.model
        if not model.is_supernet:
            return [model.architecture]
        model.count_from(update)
        sample = model.draw(update)
        return list(sandwich(model.space, sample).values()) if self.config.sampling == "sandwich" else [sample]

    def validate(self) -> dict[str, Any]:
        """Validate several subnets; return their mean ``loss`` and ``top1``, and those of each."""
        validated = validation_set(self.model.space, self.config.valid_random, self.config.seed)
        images = ImageSet(self.valid_set.source, self.valid_set.indices[self.workers.rank :: self.workers.count])
        batches = ()
        if len(images):
            batches = make_loader(self.config, self.model, images, training=False, workers=self.workers)
        metrics = evaluate(
            self.models[-1], batches, validated, self.device, self.config.precision, sums=self.workers.sums
        )
        record: dict[str, Any] = {
            key: float(np.mean([metrics[name][key] for name in validated])) for key in ("loss", "top1")
        }
        if len(validated) > 1:
            record["subnets"] = {name: metrics[name] for name in validated}
        return record

    def save(self, path: Path, updates: int | None = None) -> None:
        """Write a checkpoint; ``updates`` is the number of updates so far, by default of the completed epochs."""
        extra = {} if self.average is None else {"state_dict_ema": self.average.module.state_dict()}
        save_checkpoint(
            path,
            self.model,
            arch=self.config.model or self.model.pretrained_cfg["architecture"],
            epoch=self.epoch,
            updates=min(self.epoch * self.per_epoch, self.updates) if updates is None else updates,
            optimizer=self.optimizer.state_dict(),
            scaler=self.step.scaler.state_dict(),
            history=self.history,
            train=asdict(self.config),
            worker_count=self.workers.count,
            **extra,
        )

    def resume(self) -> None:
        """Resume from ``last.pt`` in the output folder, if it exists."""
        with self.workers.fail_together():
            self._read(self.folder / "last.pt")
        folder = f"the last epoch in {self.folder}"
        self.workers.check_same(self.epoch, folder, "give all machines the same shared folder")
        for model in self.models:
            self.workers.share(model)

    def _read(self, path: Path) -> None:
        if not path.exists():
            return
        state = read_checkpoint(path)
        self._check_settings(state)
        load_weights(self.model, state, path)
        if self.average is not None:
            load_weights(self.average.module, state, path, ema=True)
        self.optimizer.load_state_dict(state["optimizer"])
        self.step.scaler.load_state_dict(state["scaler"])
        self.epoch, self.history = state["epoch"], state["history"]

    def _check_settings(self, state: Mapping[str, Any]) -> None:
        saved = state.get("train", {})
        for name, value in asdict(self.config).items():
            if name not in _CHANGEABLE and saved.get(name) != value:
                raise ConfigError(
                    f"{self.folder} contains a run with --{name.replace('_', '-')} {saved.get(name)!r}, but this run"
                    f" has {value!r}; give another --output, or the same settings to resume the run"
                )
        if (count := state["worker_count"]) != self.workers.count:
            raise ConfigError(
                f"{self.folder} contains a run of {count} workers, but this run has {self.workers.count}; start"
                f" {count} workers with torchrun, or give another --output"
            )


def _line(record: Mapping[str, Any]) -> str:
    texts = [f"train loss {record['train_loss']:.3f}, loss {record['loss']:.3f}, top-1 {record['top1']:.2f} %"]
    texts += [f"{name} {metrics['top1']:.2f} %" for name, metrics in record.get("subnets", {}).items()]
    return ", ".join(texts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return exit code 0, or 2 after an error."""
    workers = None
    try:
        config = parse(arguments)
        workers = join(config.device)
        with workers.fail_together():
            trainer = Trainer(config, workers)
        best = trainer.run()
    except NasExtError as error:
        if workers is None or workers.reports(error):
            print(error, file=sys.stderr, flush=True)
        if workers is not None and workers.count > 1:
            os._exit(2)  # an orderly end would wait for the other workers
        return 2
    leave()
    if workers.first:
        print(f"best epoch {best['epoch'] + 1}: {_line(best)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
