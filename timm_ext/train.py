"""``python -m timm_ext.train --data .. --model .. --output ..``: a small training loop made of timm's parts.

timm's own trainer is a script of its repository and not part of its package; :mod:`timm_ext.launch` runs that one. This
one trains supernets by single paths (SPOS) or the sandwich rule, on one device or on several under torchrun, and
continues an interrupted run as if nothing had happened: everything random depends on the seed, the epoch, the update
and the worker alone.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.task import ClassificationTask
from timm.utils import ModelEmaV3
from tqdm import tqdm

from nas_core.errors import CheckpointError, NasExtError
from nas_core.files import write_json
from nas_core.precision import check_precision
from nas_core.space import Architecture
from nas_core.supernet.sampling import sandwich, validation_set
from timm_ext.building import (
    build_model,
    compile_static,
    make_loader,
    make_optimizer,
    make_schedule,
    make_stability,
    seed_everything,
)
from timm_ext.checkpoint import load_weights, read_checkpoint, save_checkpoint
from timm_ext.data import ImageSet, open_splits, where_validated
from timm_ext.evaluation import evaluate
from timm_ext.options import TrainConfig, parse
from timm_ext.passes import Passes
from timm_ext.requests import MISFITS
from timm_ext.settings import KEPT, check_continues
from timm_ext.step import Losses, Step
from timm_ext.trained.teaching import Teaching
from timm_ext.training_log import line
from timm_ext.workers import Workers, join, leave


class Trainer:
    """One run: builds everything from its settings, :meth:`run` trains.

    Args:
        workers: this process among those that train together; default: as torchrun says.

    Raises:
        NasExtError: settings that cannot work, or a run folder of other settings.
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
        self.model.set_grad_checkpointing(config.grad_checkpointing)
        if config.channels_last:
            self.model.to(memory_format=torch.channels_last)
        mixing = config.mixup > 0 or config.cutmix > 0
        criterion = SoftTargetCrossEntropy() if mixing else LabelSmoothingCrossEntropy(config.smoothing)
        self.task = ClassificationTask(self.model, criterion, device=self.device, verbose=False)
        self.average = ModelEmaV3(self.model, decay=config.ema, use_warmup=True) if config.ema else None
        self.models = [self.model] if self.average is None else [self.model, self.average.module]
        if config.torchcompile:
            compile_static(config.torchcompile, self.models)
        self.passes = Passes(config, self.model, self.train_set, self.workers)
        self.per_epoch = self.passes.updates
        self.teaching: Teaching | None = None
        if config.teacher:
            self.teaching = Teaching(config, self.model, self.train_set, self.passes.count, self.workers)
        self.updates = config.updates or config.epochs * self.per_epoch
        self.epochs = math.ceil(self.updates / self.per_epoch)
        self.optimizer = make_optimizer(config, self.model)
        self.schedule = make_schedule(config, self.optimizer, self.per_epoch)
        settings = config.precision, config.clip_grad, self.workers, config.mos_apart
        self.step = Step(self.model, self.optimizer, *settings)
        self.stability = make_stability(config, self.model.space)
        self.history: list[dict[str, Any]] = []
        self.epoch = 0

    # -- a run ---------------------------------------------------------------------------------------------------------

    def run(self) -> dict[str, Any]:
        """Train up to the last update, or until the ranking of subnets is stable; the metrics of the best epoch."""
        self.resume()
        self._say(
            f"{len(self.train_set)} images to train on, {len(self.valid_set)} to validate on:"
            f" {where_validated(self.config.data, self.config.val_data, self.config.val_count)}"
        )
        if self.teaching and self.epoch < self.epochs:
            with self.workers.together():
                self.teaching.check(self.epoch)
        if self.workers.first:
            write_json(self.folder / "settings.json", asdict(self.config))
        while self.epoch < self.epochs and not (self.stability and self.stability.stable):
            loss = self.train_epoch()
            record = {"epoch": self.epoch, "train_loss": loss, **self.validate()}
            better = record["top1"] > max((past["top1"] for past in self.history), default=-1.0)
            self.history.append(record)
            self.epoch += 1
            if self.workers.first:
                if better:
                    self.save(self.folder / "best.pt")
                self.save(self.folder / "last.pt")
                write_json(self.folder / "metrics.json", self.history)
            self._say(f"epoch {self.epoch}/{self.epochs}: " + line(record))
        return max(self.history, key=lambda record: float(record["top1"]))

    def _say(self, text: str) -> None:
        if self.workers.first:
            tqdm.write(text, file=sys.stderr)

    def train_epoch(self) -> float:
        """One pass over the training images, or what of it is left to do; the mean loss."""
        first = self.epoch * self.per_epoch
        count = min(self.per_epoch, self.updates - first)
        self.model.train()
        losses = Losses(self.step)
        hidden = None if self.workers.first else True
        bar = tqdm(total=count, desc=f"epoch {self.epoch + 1}/{self.epochs}", disable=hidden, leave=False)
        for images, labels, update, part, parts in self.passes.epoch(self.epoch, count):
            if self.schedule is not None and not part:
                self.schedule.step_update(update)
            losses.add(update, self.train_step(images, labels, update, part, parts))
            if part + 1 < parts:
                continue
            if self.average is not None:
                self.average.update(self.model, step=update + 1)
            if self.config.keep_every and not (update + 1) % self.config.keep_every and self.workers.first:
                self.save(self.folder / KEPT / f"{update + 1}.pt", update + 1)
            if not (update + 1) % self.config.log_interval:
                bar.set_postfix(loss=f"{losses.read():.3f}", refresh=False)
            bar.update()
        bar.close()
        if self.teaching:
            self.teaching.close()
        losses.read()
        return losses.mean

    def train_step(
        self, images: torch.Tensor, labels: torch.Tensor, update: int, part: int = 0, parts: int = 1
    ) -> list[torch.Tensor]:
        """A batch, the ``part``-th of the ``parts`` of an update, through each architecture that the rule trains; the
        last part changes the weights. What the update's loss is the sum of, on the device."""
        architectures = self.architectures_of(update)
        if not part:
            self.optimizer.zero_grad()
        share = len(architectures) * parts
        if self.teaching is None:
            loss_of: Callable[[Architecture], torch.Tensor] = lambda _: self.task(images, labels)["loss"]  # noqa: E731
        else:
            epoch, within = divmod(update, self.per_epoch)
            architectures = self.teaching.order(architectures)
            lesson = self.teaching.lesson(images, epoch, within * self.config.grad_accum_steps + part)
            loss_of = self.teaching.loss_of(lambda: self.task(images, labels), lesson)
        losses = [
            self.step.backward(lambda: loss_of(architecture) / share, self._holding(architecture))  # noqa: B023  run now
            for architecture in architectures
        ]
        if part + 1 == parts:
            self.step.update()
        return losses

    def _holding(self, architecture: Architecture) -> Any:
        return self.model.using(architecture) if self.model.is_supernet else nullcontext()

    def architectures_of(self, update: int) -> list[Architecture]:
        """The architectures that an update trains: one drawn, or the sandwich's three."""
        model = self.model
        if not model.is_supernet:
            return [model.architecture]
        model.count_from(update)
        drawn = model.draw(update)
        return list(sandwich(model.space, drawn).values()) if self.config.sampling == "sandwich" else [drawn]

    def validate(self) -> dict[str, Any]:
        """``loss`` and ``top1``, means over the architectures that are followed, and each one's own; ``stability_tau``
        of those that are ranked. Each worker takes a part of the images, none of them twice."""
        followed = validation_set(self.model.space, self.config.valid_random, self.config.seed)
        ranked = {str(index): one for index, one in enumerate(self.stability.architectures)} if self.stability else {}
        own = ImageSet(self.valid_set.source, self.valid_set.indices[self.workers.rank :: self.workers.count])
        batches = make_loader(self.config, self.model, own, training=False, workers=self.workers) if len(own) else ()
        every = evaluate(
            self.models[-1], batches, {**followed, **ranked}, self.device, self.config.precision, sums=self.workers.sums
        )
        each = {name: every[name] for name in followed}
        mean = {key: float(np.mean([metrics[key] for metrics in each.values()])) for key in ("loss", "top1")}
        with self.workers.together():
            tau = self.stability.update([every[name]["loss"] for name in ranked]) if self.stability else None
        more = {"subnets": each} if len(each) > 1 else {}
        return {**mean, **({} if tau is None else {"stability_tau": tau}), **more}

    # -- files ---------------------------------------------------------------------------------------------------------

    def save(self, path: Path, updates: int | None = None) -> None:
        """Write a checkpoint; ``updates`` so far, by default those of all epochs that have ended."""
        more = {} if self.average is None else {"state_dict_ema": self.average.module.state_dict()}
        if self.stability:
            more["stability"] = self.stability.state_dict()
        save_checkpoint(
            path,
            self.model,
            arch=self.config.model or self.model.pretrained_cfg["architecture"],
            epoch=self.epoch,
            updates=min(self.epoch * self.per_epoch, self.updates) if updates is None else updates,
            optimizer=self.optimizer.state_dict(),
            scaler=self.step.state_dict(),
            history=self.history,
            train=asdict(self.config),
            worker_count=self.workers.count,
            **more,
        )

    def resume(self) -> None:
        """Continue from ``last.pt`` if the run folder has one.

        Raises:
            ConfigError: it was made with other settings, or not all workers see it. CheckpointError: it is damaged.
        """
        with self.workers.together():
            self._read(self.folder / "last.pt")
        folder = f"the last epoch in {self.folder}"
        self.workers.check_same(self.epoch, folder, "all machines have to see the same folder")
        for model in self.models:
            self.workers.share(model)

    def _read(self, path: Path) -> None:
        if not path.exists():
            return
        state = read_checkpoint(path)
        try:
            check_continues(self.folder, state, self.config, self.workers.count)
            load_weights(self.model, state, path)
            if self.average is not None:
                load_weights(self.average.module, state, path, ema=True)
            self.optimizer.load_state_dict(state["optimizer"])
            self.step.load_state_dict(state["scaler"])
            if self.stability:
                self.stability.load_state_dict(state["stability"])
            self.epoch, self.history = int(state["epoch"]), list(state["history"])
            if [int(record["epoch"]) for record in self.history if line(record)] != list(range(self.epoch)):
                raise ValueError(f"a history of {len(self.history)} epochs after {self.epoch}")
        except MISFITS as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise CheckpointError(
                f"{path} cannot be continued ({reason}); restore it, or give another --output"
            ) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 0, or 2 after a wrong input."""
    try:
        config = parse(arguments)
    except NasExtError as error:
        return _failed(error, quiet=os.environ.get("RANK", "0") != "0")
    try:
        workers = join(config.device)
    except NasExtError as error:
        return _failed(error)
    try:
        with workers.together():
            trainer = Trainer(config, workers)
        best = trainer.run()
    except NasExtError as error:
        code = _failed(error, quiet=not workers.tells(error))
        if workers.count > 1:
            # Taking leave in order would wait for workers that are elsewhere.
            sys.stderr.flush()
            os._exit(code)
        return code
    leave()
    if workers.first:
        print(f"best epoch {best['epoch'] + 1}: {line(best)}")
    return 0


def _failed(error: NasExtError, quiet: bool = False) -> int:
    if not quiet:
        print(error, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
