"""What studies have fairseq's trainer do with a supernet; see :class:`nas_core.supernet.host.Supernet`."""

from __future__ import annotations

import copy
import re
import sys
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from fairseq_ext.checkpoint import read_state, write_network
from fairseq_ext.compat import options_in
from fairseq_ext.data import options_of
from fairseq_ext.extraction import write_subnet
from fairseq_ext.supernets.standalone import SCRATCH, SETTINGS, Run, digest, run_settings
from nas_core.errors import ConfigError
from nas_core.files import real_path
from nas_core.layers import MoSConfig
from nas_core.space import Architecture
from nas_core.supernet.host import Supernet

_INHERITED, _LAST = "inherited.pt", "checkpoint_last.pt"
_KEPT = re.compile(r"checkpoint(?:_\d+_(?P<updates>\d+)|\d+)\.pt")
"""Names of checkpoints within an epoch, and at the end of one, which do not tell their updates."""


class TrainingSupernet(Supernet, ABC):
    """A checkpoint whose subnets can be trained from scratch or further, and whose supernet with other experts."""

    path: Path
    device: torch.device
    fairseq_task: Any
    model: Any
    _state: dict[str, Any]
    _smoothing: float
    _data: str | None
    _subset: str
    _sentences: int | None
    _batches: list[dict[str, Any]] | None

    @abstractmethod
    def validation(self) -> list[dict[str, Any]]:
        """The batches that are evaluated, read once."""

    def _opened(self, path: Path) -> Any:
        """Another checkpoint, evaluated as this one, also by the same loss."""
        opened: Any = type(self)(  # type: ignore[call-arg]
            path, self._data, self._subset, self._sentences, str(self.device), self.precision
        )
        opened._smoothing = self._smoothing
        return opened

    def _command(self, folder: Path, changes: Mapping[str, str], run: Run = SCRATCH) -> list[str]:
        """The trainer with the settings that lie in a folder; a setting that there is not is said before it runs."""
        data = str(options_of(self.fairseq_task).data)
        run_settings(folder, data, changes, run)
        told = [f"{name}={value}" for name, value in changes.items()]
        return [sys.executable, "-m", "fairseq_ext.supernets.standalone", str(folder), data, *run.options(), *told]

    # -- from scratch --------------------------------------------------------------------------------------------------

    def examples_key(self) -> str:
        """A digest of the batches that are evaluated."""
        return digest(self.validation())

    def training_data(self) -> dict[str, str]:
        """The folder of ``fairseq-preprocess``, or several that are joined by a colon."""
        folders = str(options_of(self.fairseq_task).data).split(":")
        return {"data": ":".join(str(real_path(each)) for each in folders)}

    def standalone_command(self, architecture: Architecture, folder: Path, changes: Mapping[str, str]) -> list[str]:
        """fairseq's trainer with the settings of the supernet's; see :mod:`fairseq_ext.supernets.standalone`."""
        write_subnet(self._state, {}, self.space.validate(architecture), folder / SETTINGS)
        return self._command(folder, changes)

    def evaluate_standalone(self, folder: Path) -> tuple[dict[str, float], str]:
        """Metrics after the last update, on the same split."""
        trained = self._opened(folder / _LAST)
        return trained.evaluate(trained.space.largest()), trained.examples_key()

    def standalone_updates(self, folder: Path) -> int | None:
        """The updates of the last checkpoint."""
        return _updates(folder / _LAST)

    # -- further -------------------------------------------------------------------------------------------------------

    def further_command(
        self, architecture: Architecture, folder: Path, changes: Mapping[str, str], every: int, most: int
    ) -> list[str]:
        """The same trainer, from the inherited weights of the subnet."""
        architecture = self.space.validate(architecture)
        write_subnet(self._state, {}, architecture, folder / SETTINGS)
        run = Run(inherited=str(folder / _INHERITED), every=every, most_updates=most)
        command = self._command(folder, changes, run)
        self.extract(architecture, folder / _INHERITED)
        return command

    def kept_networks(self, folder: Path) -> dict[int, Path]:
        """Checkpoints at ends of epochs and within."""
        found = {}
        for path in folder.glob("checkpoint*.pt"):
            if (name := _KEPT.fullmatch(path.name)) and zipfile.is_zipfile(path):  # written to its end
                updates = int(name["updates"]) if name["updates"] else _updates(path)
                if updates is not None:
                    found[updates] = path
        return found

    def evaluate_network(self, path: Path) -> dict[str, float]:
        """Metrics on the very batches of this supernet."""
        trained = self._on_its_batches(path)
        metrics: dict[str, float] = trained.evaluate(trained.space.largest())
        return metrics

    def _on_its_batches(self, path: Path) -> Any:
        trained = self._opened(path)
        trained._batches = self.validation()
        return trained

    # -- other experts -------------------------------------------------------------------------------------------------

    @property
    def experts(self) -> MoSConfig:
        """What ``--mos`` and its kin were."""
        experts: MoSConfig = self.model.net.config.mos
        return experts

    def supernet_command(self, folder: Path, experts: MoSConfig, changes: Mapping[str, str]) -> list[str]:
        """The same trainer, for a supernet with these experts and no weights to begin with.

        Raises:
            ConfigError: this one began with trained weights, so that the other would not differ in experts alone.
        """
        settings = copy.deepcopy(self._state["cfg"])
        model = vars(settings["model"])
        if begun := _began_with({**options_in(settings.get("checkpoint")), **model}):
            raise ConfigError(
                f"{self.path} began with the weights of {begun}, which have its experts; give a supernet that was"
                " trained from scratch"
            )
        model.update(
            mos=experts.kind,
            mos_experts=experts.experts,
            mos_router_hidden=experts.router_hidden,
            mos_router_layers=experts.router_layers,
            mos_router_dropout=experts.router_dropout,
            mos_encoding=experts.encoding,
            mos_start=experts.start,
            mos_rank=experts.rank,
        )
        if experts.kind == "none" or experts.experts == 1:
            for group in (model, options_in(settings["task"])):
                if "mos_apart" in group:
                    group["mos_apart"] = 0.0  # there is nothing to keep apart
        write_network(self._state, settings, {}, folder / SETTINGS)
        return self._command(folder, changes, Run(supernet=True))

    def trained_supernet(self, folder: Path) -> Any:
        """That one, from the file that is named as this one's, or after the last update, on the very batches."""
        own = folder / self.path.name
        return self._on_its_batches(own if own.exists() else folder / _LAST)


def _began_with(model: Mapping[str, Any]) -> str:
    """What a supernet with these options had its first weights from, in words; empty: it was trained from scratch."""
    if given := model.get("finetune_from_model"):
        return str(given)
    if (given := model.get("restore_file")) and given != _LAST:
        return str(given)
    return "a trained network" if model.get("taken_over") else ""


def _updates(path: Path) -> int | None:
    """The updates that a checkpoint was trained for."""
    history: Sequence[Mapping[str, Any]] = read_state(path, mmap=True).get("optimizer_history") or ()
    return int(history[-1]["num_updates"]) if history else None
