"""Output folder of an NNI search, with the files of ``nas-ext search``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nas_core import __version__
from nas_core.files.journal import read_jsonl
from nas_core.files.writing import make_folder, write_json
from nas_core.search import ParetoArchive, Strategy
from nas_core.search.archive import Entry
from nas_core.search.finalists import Finalist, choose_finalists, read_finalists, save_finalists
from nas_core.search.journal import Journal, plain_metrics, settle_config
from nas_core.search.sessions import Session
from nas_core.space import Architecture
from nas_core.space.files import space_to_dict

FOLDER = "nas-ext"
FINALISTS = 8


class Record:
    """Output folder of a search, from which the search resumes and which ``nas-ext report`` reads.

    Args:
        folder: folder, created if missing.
        strategy: strategy whose settings and limits are stored.
        notes: further entries of ``config.yaml``, such as ``units`` of metrics by name.

    Raises:
        ConfigError: the folder belongs to a search with other settings.
    """

    def __init__(self, folder: Path, strategy: Strategy, notes: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self._journal = Journal(folder / "journal.jsonl")
        self._strategy = strategy
        limits = strategy.proposals.constraints
        self._name = " ".join(constraint.label for constraint in limits) or "unlimited"
        self._archive = ParetoArchive(list(dict.fromkeys([*strategy.objectives, *(limit.name for limit in limits)])))
        self._best: Entry | None = None
        make_folder(folder)
        settle_config(
            folder / "config.yaml",
            {
                "objectives": list(self._archive.objectives),
                "searches": {self._name: strategy.describe()},
                "space": space_to_dict(strategy.space),
            },
            {"nas_ext": __version__, "engine": "NNI", **(notes or {})},
        )
        self._session: Session | None = None

    @classmethod
    def of_experiment(cls, strategy: Strategy, units: Mapping[str, str]) -> Record | None:
        """Create the output folder of the running NNI experiment, next to its log; return None outside one."""
        log = os.environ.get("NNI_LOG_DIRECTORY")
        if not log:
            return None
        folder = Path(log).parent
        return cls(folder / FOLDER, strategy, {"experiment": {"id": folder.name}, "units": dict(units)})

    def results(self) -> Iterator[tuple[Architecture, dict[str, float | None]]]:
        """Yield architecture and metrics of all stored results, oldest first, and add them to the Pareto front."""
        for entry in read_jsonl(self._journal.path) if self._journal.path.exists() else []:
            architecture = Architecture(entry["genes"])
            self._journal.replayed += 1
            self._take(architecture, entry["metrics"])
            yield architecture, entry["metrics"]

    def add(self, architecture: Architecture, metrics: Mapping[str, Any]) -> None:
        """Write a result, and update the Pareto front and the best architectures in the folder."""
        plain = plain_metrics(metrics)
        self._session = self._session or Session(self.folder)
        self._journal.append(self._name, architecture, plain)
        self._session.save()
        self._take(architecture, plain)
        if insight := self._strategy.insight():
            write_json(self.folder / "state.json", {"searches": {self._name: insight}})
        if self._best is not None:
            self._archive.save(self.folder / "pareto.csv")
            self._save_finalists(choose_finalists({self._name: self._best}, self._archive, FINALISTS))

    def _save_finalists(self, finalists: Sequence[Finalist]) -> None:
        previous = {f"finalists/{entry['key']}.json" for entry in read_finalists(self.folder)}
        save_finalists(self.folder, finalists)
        for file in previous - {finalist.file for finalist in finalists}:
            (self.folder / file).unlink(missing_ok=True)

    def _take(self, architecture: Architecture, metrics: Mapping[str, float | None]) -> None:
        # Imported trials may exceed a limit.
        metric, proposals = self._strategy.metric, self._strategy.proposals
        if not proposals.feasible(self._strategy.space.rows([architecture]))[0]:
            return
        numbers = {name: value for name, value in metrics.items() if value is not None}
        self._archive.add(architecture, numbers)
        if metric in numbers and (self._best is None or numbers[metric] < self._best.metrics[metric]):
            self._best = Entry(architecture, numbers)
