"""Stopping criterion of RankNAS in fairseq's training; see :mod:`nas_core.supernet.stability`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import torch

from fairseq_ext.compat import one_line_errors, replace_function
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json
from nas_core.space import Architecture
from nas_core.supernet.stability import Stability

logger = logging.getLogger(__name__)

FILE = "stability.json"
PREFIX = "ranked:"
"""Prefix of the names of logged losses of ranked architectures."""


def exact(value: Any) -> Any:
    """Convert a logged loss to double precision."""
    return value.double() if torch.is_tensor(value) else float(value)


class Ranking:
    """Ranking of fixed architectures by their validation loss, summed over all workers."""

    def __init__(self, stability: Stability) -> None:
        self.stability = stability
        self.epoch = 1
        self._sums: dict[str, Any] = {}
        self._loaded = False

    def architectures(self) -> dict[str, Architecture]:
        """Return the ranked architectures: name of the logged loss -> architecture."""
        return {f"{PREFIX}{index}": architecture for index, architecture in enumerate(self.stability.architectures)}

    def forget(self) -> None:
        self._sums = {}

    def add(self, outputs: list[dict[str, Any]]) -> None:
        """Add the logging outputs of all workers for one batch."""
        for output in outputs:
            for name, value in output.items():
                if name.startswith(PREFIX):
                    self._sums[name] = self._sums.get(name, 0.0) + exact(value)

    def finish(self, folder: Path, writes: bool) -> bool:
        """Update the ranking after a validation; return True if training may stop.

        Args:
            folder: folder of the checkpoints, in which the state is stored.
            writes: True on the worker that writes files.
        """
        path = folder / FILE
        if not self._loaded:
            self._loaded = True
            state = read_json(path) if path.exists() and self.epoch > 1 else {}
            if state.get("epoch") == self.epoch - 1:  # otherwise of a run that was started again
                self.stability.load_state_dict(state)
        if self._sums:
            losses = [torch.as_tensor(self._sums[name], dtype=torch.double) for name in self.architectures()]
            tau = self.stability.update(torch.stack(losses).tolist())
            self._sums = {}
            if tau is not None:
                logger.info(
                    "ranking of %d subnets: Kendall's tau %.4f between the last two validations",
                    len(self.stability.architectures),
                    tau,
                )
            if self.stability.stable:
                logger.info("the ranking of subnets is stable, so training stops")
            if writes:
                write_json(path, {"epoch": self.epoch, **self.stability.state_dict()})
        return self.stability.stable


def stop_when_stable(ranking: Ranking) -> None:
    def replacement(original: Any) -> Any:
        def should_stop_early(cfg: Any, valid_loss: float | None) -> bool:
            stop = bool(original(cfg, valid_loss))
            if not getattr(cfg.task, "stability_architectures", 0):  # another training of the same process
                return stop
            with one_line_errors():
                writes = cfg.distributed_training.distributed_rank == 0
                return ranking.finish(Path(cfg.checkpoint.save_dir), writes) or stop

        return should_stop_early

    for name in ("fairseq_cli.train", "__main__"):
        if hasattr(module := sys.modules.get(name), "should_stop_early"):
            replace_function(module, "should_stop_early", replacement)
