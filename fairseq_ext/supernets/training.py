"""Training of a supernet's networks by fairseq's trainer."""

from __future__ import annotations

import copy
import re
import sys
import zipfile
from abc import ABC
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairseq_ext.checkpoint import read_state, write_network
from fairseq_ext.compat import options_in
from fairseq_ext.data import options_of
from fairseq_ext.extraction import write_subnet
from fairseq_ext.supernets.standalone import LAST, SCRATCH, SETTINGS, Run, digest, run_settings
from nas_core.errors import ConfigError
from nas_core.files.reading import real_path
from nas_core.layers import MoSConfig
from nas_core.space import Architecture
from nas_core.supernet.host import Supernet

_INHERITED = "inherited.pt"
_KEPT = re.compile(r"checkpoint(?:_\d+_(?P<updates>\d+)|\d+)\.pt")
"""Names of checkpoints within an epoch, and at its end; the latter lack the number of updates."""


class TrainingSupernet(Supernet, ABC):
    """Trainings for :class:`fairseq_ext.supernets.supernet.FairseqSupernet`: subnets, or other experts."""

    def _opened(self, path: Path) -> Any:
        opened: Any = type(self)(  # type: ignore[call-arg]
            path, self._data, self._subset, self._sentences, str(self.device), self.precision
        )
        opened._smoothing = self._smoothing
        return opened

    def _command(self, folder: Path, changes: Mapping[str, str], run: Run = SCRATCH) -> list[str]:
        data = str(options_of(self.fairseq_task).data)
        run_settings(folder, data, changes, run)  # reports wrong settings before the command runs
        pairs = [f"{name}={value}" for name, value in changes.items()]
        return [sys.executable, "-m", "fairseq_ext.supernets.standalone", str(folder), data, *run.options(), *pairs]

    # -- from scratch --------------------------------------------------------------------------------------------------

    def examples_key(self) -> str:
        return digest(self.batches())

    def training_data(self) -> dict[str, str]:
        """Return the folders of ``fairseq-preprocess``, joined by colons."""
        folders = str(options_of(self.fairseq_task).data).split(":")
        return {"data": ":".join(str(real_path(folder)) for folder in folders)}

    def standalone_command(self, architecture: Architecture, folder: Path, changes: Mapping[str, str]) -> list[str]:
        """Return the training command; see :mod:`fairseq_ext.supernets.standalone`."""
        write_subnet(self._state, {}, self.space.validate(architecture), folder / SETTINGS)
        return self._command(folder, changes)

    def evaluate_standalone(self, folder: Path) -> tuple[dict[str, float], str]:
        trained = self._opened(folder / LAST)
        return trained.evaluate(trained.space.largest()), trained.examples_key()

    def standalone_updates(self, folder: Path) -> int | None:
        return _updates(folder / LAST)

    # -- further -------------------------------------------------------------------------------------------------------

    def further_command(
        self, architecture: Architecture, folder: Path, changes: Mapping[str, str], every: int, most: int
    ) -> list[str]:
        architecture = self.space.validate(architecture)
        write_subnet(self._state, {}, architecture, folder / SETTINGS)
        run = Run(inherited=str(folder / _INHERITED), every=every, most_updates=most)
        command = self._command(folder, changes, run)
        self.extract(architecture, folder / _INHERITED)
        return command

    def kept_networks(self, folder: Path) -> dict[int, Path]:
        networks = {}
        for path in folder.glob("checkpoint*.pt"):
            if (name := _KEPT.fullmatch(path.name)) and zipfile.is_zipfile(path):  # completely written
                updates = int(name["updates"]) if name["updates"] else _updates(path)
                if updates is not None:
                    networks[updates] = path
        return networks

    def evaluate_network(self, path: Path) -> dict[str, float]:
        trained = self._on_same_batches(path)
        return trained.evaluate(trained.space.largest())  # type: ignore[no-any-return]

    def _on_same_batches(self, path: Path) -> Any:
        trained = self._opened(path)
        trained._batches = self.batches()
        return trained

    # -- other experts -------------------------------------------------------------------------------------------------

    @property
    def experts(self) -> MoSConfig:
        return self.model.net.config.mos  # type: ignore[no-any-return]

    def supernet_command(self, folder: Path, experts: MoSConfig, changes: Mapping[str, str]) -> list[str]:
        settings = copy.deepcopy(self._state["cfg"])
        model = vars(settings["model"])
        options = {**options_in(settings.get("checkpoint")), **model}
        restored = options.get("restore_file")
        initial = options.get("finetune_from_model") or (restored if restored != LAST else None)
        if initial or options.get("taken_over"):
            raise ConfigError(
                f"{self.path} began with the weights of {initial or 'a trained network'}, which have its experts; give"
                " a supernet that was trained from scratch"
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
                    group["mos_apart"] = 0.0  # a single expert has no similarity
        write_network(self._state, settings, {}, folder / SETTINGS)
        return self._command(folder, changes, Run(supernet=True))

    def trained_supernet(self, folder: Path) -> Any:
        same_name = folder / self.path.name
        return self._on_same_batches(same_name if same_name.exists() else folder / LAST)


def _updates(path: Path) -> int | None:
    history: Sequence[Mapping[str, Any]] = read_state(path, mmap=True).get("optimizer_history") or ()
    return int(history[-1]["num_updates"]) if history else None
