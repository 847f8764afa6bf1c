"""The stop of RankNAS's supernet training inside fairseq's own loop: see :mod:`nas_core.supernet.stability`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import torch

from fairseq_ext.compat import one_line_errors
from nas_core.files import read_json, write_json
from nas_core.space import Architecture
from nas_core.supernet.stability import Stability

logger = logging.getLogger(__name__)

FILE = "stability.json"
PREFIX = "ranked:"
"""Prefix of logging entries that hold the loss of one ranked architecture."""


def exact(value: Any) -> Any:
    """A logged loss as a number that sums without rounding, on the device where it lies: reading it would wait."""
    return value.double() if torch.is_tensor(value) else float(value)


class Ranking:
    """Sums the losses of the ranked architectures over a validation, in all workers alike."""

    def __init__(self, stability: Stability) -> None:
        self.stability = stability
        self.epoch = 1
        """The one that is under way."""
        self._sums: dict[str, Any] = {}
        self._looked = False

    def architectures(self) -> dict[str, Architecture]:
        """By the name under which their losses are logged."""
        return {f"{PREFIX}{index}": one for index, one in enumerate(self.stability.architectures)}

    def forget(self) -> None:
        """What an earlier validation, or one before training, has summed."""
        self._sums = {}

    def add(self, outputs: list[dict[str, Any]]) -> None:
        """The logging outputs of one batch, of all workers."""
        for output in outputs:
            for name, value in output.items():
                if name.startswith(PREFIX):
                    self._sums[name] = self._sums.get(name, 0.0) + exact(value)

    def finish(self, folder: Path, writes: bool) -> bool:
        """After an update, or a validation: whether training may stop.

        What is remembered stands in a file beside the checkpoints, as fairseq keeps a task's state but does not give it
        back when training is resumed; one of several workers ``writes`` it.

        Raises:
            DataError: the file belongs to other settings.
        """
        path = folder / FILE
        if not self._looked:
            self._looked = True
            known = read_json(path) if path.exists() and self.epoch > 1 else {}
            if known.get("epoch") == self.epoch - 1:  # otherwise it is of a run that was begun anew
                self.stability.load_state_dict(known)
        if self._sums:
            losses = [torch.as_tensor(self._sums[name], dtype=torch.double) for name in self.architectures()]
            tau = self.stability.update(torch.stack(losses).tolist())
            self._sums = {}
            if tau is not None:
                logger.info("ranking of %d subnets: tau %.4f with the last", len(self.stability.architectures), tau)
            if self.stability.stable:
                logger.info("the ranking of subnets is stable: training stops")
            if writes:
                write_json(path, {"epoch": self.epoch, **self.stability.state_dict()})
        return self.stability.stable


def stop_when_stable(ranking: Ranking) -> None:
    """Have fairseq's loop ask the ranking too whether to stop early; it asks after each validation, before saving.

    A task has no say in this otherwise. The loop's function is replaced in the module that runs, under whichever name.
    """
    for name in ("fairseq_cli.train", "__main__"):
        module = sys.modules.get(name)
        original = getattr(module, "should_stop_early", None)
        if module is None or original is None:
            continue
        original = getattr(original, "of_fairseq", original)

        def should_stop_early(cfg: Any, valid_loss: float | None, original: Any = original) -> bool:
            stop = bool(original(cfg, valid_loss))
            if not getattr(cfg.task, "stability_architectures", 0):  # another training of the same process
                return stop
            with one_line_errors():
                writes = cfg.distributed_training.distributed_rank == 0
                return ranking.finish(Path(cfg.checkpoint.save_dir), writes) or stop

        should_stop_early.of_fairseq = original  # type: ignore[attr-defined]
        module.should_stop_early = should_stop_early  # type: ignore[attr-defined]
