"""``python -m timm_ext.train --data .. --model .. --output ..``: a small training loop made of timm's parts.

timm's own trainer is a script of its repository and not part of its package; :mod:`timm_ext.launch` runs that one. This
one trains supernets by single paths (SPOS) or the sandwich rule, and continues an interrupted run as if nothing had
happened: everything random depends on the seed, the epoch and the update alone.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timm.data import Mixup
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.task import ClassificationTask
from timm.utils import ModelEmaV3
from tqdm import tqdm

from nas_core.device import usable_device
from nas_core.errors import CheckpointError, ConfigError, DataError, NasExtError
from nas_core.files import write_json
from nas_core.space import Architecture
from nas_core.supernet.sampling import sandwich, validation_set
from nas_core.supernet.stability import Stability, StabilityConfig
from timm_ext.building import build_model, make_loader, make_optimizer, make_schedule, seed_everything
from timm_ext.checkpoint import load_weights, read_checkpoint, save_checkpoint
from timm_ext.data import open_splits, where_validated
from timm_ext.evaluation import evaluate
from timm_ext.model import VisionModel
from timm_ext.options import TrainConfig, parse

__all__ = ["Trainer", "main"]

_FREE = ("device", "workers", "output")
"""Settings that may differ when a run is continued; other ``workers`` augment by other draws."""


class Trainer:
    """One run: builds everything from its settings, :meth:`run` trains.

    Raises:
        NasExtError: settings that cannot work, or a run folder of other settings.
    """

    def __init__(self, config: TrainConfig) -> None:
        self.config, self.folder = config, Path(config.output)
        self.device = usable_device(config.device)
        self.train_set, self.valid_set = open_splits(
            config.data, config.val_data or None, config.val_count, config.seed, config.train_count
        )
        seed_everything(config.seed, 0)
        self.model = build_model(config, self.train_set.source.classes).to(self.device)
        if config.init:
            path = Path(config.init)
            load_weights(self.model, read_checkpoint(path), path, ema=True)
        self.model.set_grad_checkpointing(config.grad_checkpointing)
        mixing = config.mixup > 0 or config.cutmix > 0
        smooth = LabelSmoothingCrossEntropy(config.smoothing)
        self.task = ClassificationTask(
            self.model, criterion=SoftTargetCrossEntropy() if mixing else smooth, device=self.device, verbose=False
        )
        self.mixup = None
        if mixing:
            self.mixup = Mixup(
                mixup_alpha=config.mixup,
                cutmix_alpha=config.cutmix,
                label_smoothing=config.smoothing,
                num_classes=self.model.num_classes,
            )
        self.average = ModelEmaV3(self.model, decay=config.ema, use_warmup=True) if config.ema else None
        self.per_epoch = len(self.train_set) // config.batch_size
        if not self.per_epoch:
            raise DataError(
                f"{len(self.train_set)} images do not fill one batch of {config.batch_size}; lower --batch-size"
            )
        self.updates = config.updates or config.epochs * self.per_epoch
        self.epochs = math.ceil(self.updates / self.per_epoch)
        self.optimizer = make_optimizer(config, self.model)
        self.schedule = make_schedule(config, self.optimizer, self.per_epoch)
        self.stability: Stability | None = None
        if config.stability_architectures:
            settings = StabilityConfig(
                architectures=config.stability_architectures,
                tau=config.stability_tau,
                patience=config.stability_patience,
                seed=config.seed,
            )
            self.stability = Stability(self.model.space, settings)
        self.history: list[dict[str, Any]] = []
        self.epoch = 0

    # -- a run ---------------------------------------------------------------------------------------------------------

    def run(self) -> dict[str, Any]:
        """Train up to the last update, or until the ranking of subnets is stable; the metrics of the best epoch."""
        self.resume()
        tqdm.write(
            f"{len(self.train_set)} images to train on, {len(self.valid_set)} to validate on:"
            f" {where_validated(self.config.data, self.config.val_data, self.config.val_count)}",
            file=sys.stderr,
        )
        write_json(self.folder / "settings.json", asdict(self.config))
        while self.epoch < self.epochs and not (self.stability and self.stability.stable):
            loss = self.train_epoch()
            record = {"epoch": self.epoch, "train_loss": loss, **self.validate()}
            better = record["top1"] > max((past["top1"] for past in self.history), default=-1.0)
            self.history.append(record)
            self.epoch += 1
            if better:
                self.save(self.folder / "best.pt")
            self.save(self.folder / "last.pt")
            write_json(self.folder / "metrics.json", self.history)
            tqdm.write(f"epoch {self.epoch}/{self.epochs}: " + _line(record), file=sys.stderr)
        return max(self.history, key=lambda record: float(record["top1"]))

    def train_epoch(self) -> float:
        """One pass over the training images, or what of it is left to do; the mean loss."""
        config, total = self.config, 0.0
        seed_everything(config.seed, self.epoch + 1)
        loader, first = make_loader(config, self.model, self.train_set, training=True), self.epoch * self.per_epoch
        update, count = first, min(self.per_epoch, self.updates - first)
        self.model.train()
        bar = tqdm(total=count, desc=f"epoch {self.epoch + 1}/{self.epochs}", disable=None, leave=False)
        for images, labels in islice(loader, count):
            if self.schedule is not None:
                self.schedule.step_update(update)
            images, labels = images.to(self.device), labels.to(self.device)
            if self.mixup is not None:
                images, labels = self.mixup(images, labels)
            loss = self.train_step(images, labels, update)
            update, total = update + 1, total + loss
            if self.average is not None:
                self.average.update(self.model, step=update)
            bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
            bar.update()
        bar.close()
        return total / count

    def train_step(self, images: torch.Tensor, labels: torch.Tensor, update: int) -> float:
        """One update on a batch, of each architecture that the rule trains; the loss."""
        architectures = self.architectures_of(update)
        self.optimizer.zero_grad()
        total = 0.0
        for architecture in architectures:
            with self.model.using(architecture), torch.autocast(self.device.type, torch.bfloat16, enabled=self._half):
                loss = self.task(images, labels)["loss"] / len(architectures)
            loss.backward()
            total += loss.item()
        if not np.isfinite(total):
            raise NasExtError(f"the loss became {total} at update {update}; lower --lr or give --clip-grad")
        if self.config.clip_grad:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_grad)
        self.optimizer.step()
        return total

    def architectures_of(self, update: int) -> list[Architecture]:
        """The architectures that an update trains: one drawn, or the sandwich's three."""
        model = self.model
        if not model.is_supernet:
            return [model.architecture]
        model.updates.fill_(update)
        drawn = model.draw(update)
        return list(sandwich(model.space, drawn).values()) if self.config.sampling == "sandwich" else [drawn]

    def validate(self) -> dict[str, Any]:
        """``loss`` and ``top1``, means over the architectures that are followed, and each one's own; ``stability_tau``
        of those that are ranked."""
        followed = validation_set(self.model.space, self.config.valid_random, self.config.seed)
        ranked = {str(index): one for index, one in enumerate(self.stability.architectures)} if self.stability else {}
        model: VisionModel = self.model if self.average is None else self.average.module
        batches = make_loader(self.config, self.model, self.valid_set, training=False)
        every = evaluate(model, batches, {**followed, **ranked}, self.device, self._half)
        each = {name: every[name] for name in followed}
        mean = {key: float(np.mean([metrics[key] for metrics in each.values()])) for key in ("loss", "top1")}
        tau = self.stability.update([every[name]["loss"] for name in ranked]) if self.stability else None
        more = {"subnets": each} if len(each) > 1 else {}
        return {**mean, **({} if tau is None else {"stability_tau": tau}), **more}

    @property
    def _half(self) -> bool:
        return self.config.precision == "bfloat16"

    # -- files ---------------------------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        more = {} if self.average is None else {"state_dict_ema": self.average.module.state_dict()}
        if self.stability:
            more["stability"] = self.stability.state_dict()
        save_checkpoint(
            path,
            self.model,
            arch=self.config.model,
            epoch=self.epoch,
            optimizer=self.optimizer.state_dict(),
            history=self.history,
            train=asdict(self.config),
            **more,
        )

    def resume(self) -> None:
        """Continue from ``last.pt`` if the run folder has one.

        Raises:
            ConfigError: it was made with other settings. CheckpointError: it is damaged.
        """
        path = self.folder / "last.pt"
        if not path.exists():
            return
        state = read_checkpoint(path)
        now, then = asdict(self.config), state.get("train")
        if not isinstance(then, dict):
            raise CheckpointError(f"{path} was not written by timm_ext.train; give another --output")
        then = {**{field.name: field.default for field in fields(TrainConfig)}, **then}  # settings added since
        for name, value in now.items():
            if name not in _FREE and then.get(name) != value:
                raise ConfigError(
                    f"{self.folder} holds a run with --{name.replace('_', '-')} {then.get(name)!r}, now {value!r};"
                    " give another --output, or the same settings to continue it"
                )
        load_weights(self.model, state, path)
        if self.average is not None:
            load_weights(self.average.module, state, path, ema=True)
        self.optimizer.load_state_dict(state["optimizer"])
        if self.stability:
            self.stability.load_state_dict(state.get("stability", {}))
        self.epoch, self.history = state["epoch"], state["history"]


def _line(record: dict[str, Any]) -> str:
    parts = [f"train loss {record['train_loss']:.3f}, loss {record['loss']:.3f}, top-1 {record['top1']:.2f} %"]
    parts += [f"{name} {metrics['top1']:.2f} %" for name, metrics in record.get("subnets", {}).items()]
    parts += [f"tau of ranking {record['stability_tau']:.3f}"] if "stability_tau" in record else []
    return ", ".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 0, or 2 after a wrong input."""
    try:
        best = Trainer(parse(arguments)).run()
    except NasExtError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"best epoch {best['epoch'] + 1}: {_line(best)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
