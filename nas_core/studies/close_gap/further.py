"""Further training of subnets: run by the host, evaluated along the way, ended where they are good enough."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError, DataError
from nas_core.files import append_jsonl, file_digest, make_folder, read_jsonl, real_path, write_json
from nas_core.locks import only_process
from nas_core.space import Architecture
from nas_core.studies.base import Subject
from nas_core.studies.gap.runs import diverged
from nas_core.studies.trainings import LOG, Training, check_settings, train_all

_CURVE, _ENDED = "curve.jsonl", "ended.json"
"""Files in a network's folder: its evaluations so far, and a note that its trainer has come to an end."""

Enough = Callable[[Mapping[str, float]], bool]
"""Whether a network with these metrics is good enough."""


@dataclass(frozen=True)
class Schedule:
    """How long subnets are trained further, and how.

    Raises:
        ConfigError: networks are not evaluated after the last update.
    """

    every: int
    """Updates after which a network is evaluated each time."""
    most: int
    """Updates after which training ends, over which the learning rate has its schedule."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """Settings that are others than the supernet's."""

    def __post_init__(self) -> None:
        if self.every < 1 or self.most < 1 or self.most % self.every:
            raise ConfigError(
                f"every {self.every}, most updates {self.most}; expected numbers above 0, the second a multiple of the"
                " first"
            )


@dataclass(frozen=True)
class Curve:
    """Metrics of one network over its further updates."""

    points: Mapping[int, Mapping[str, float]]
    """Updates -> metrics, from 0 with inherited weights on."""

    def reached(self, enough: Enough) -> int | None:
        """The updates after which it was first good enough; None: it has not been."""
        return next((updates for updates, metrics in sorted(self.points.items()) if enough(metrics)), None)


def train_further(
    subject: Subject,
    wanted: Mapping[Architecture, Enough],
    folder: Path,
    schedule: Schedule,
    jobs: int = 1,
) -> dict[Architecture, Curve]:
    """Train subnets of a supernet from inherited weights until each is good enough, or for all updates of the schedule.

    Each has a folder of its own with the log of its training and its curve. Called again, what is finished is read, and
    the others go on from what their trainer has kept.

    Args:
        wanted: when each subnet is good enough. What has been so before any training is not trained.

    Raises:
        ConfigError: the supernet's host trains no subnets further, the folder holds runs of other settings, data or
            examples, or one of its networks is still being trained. DataError: a training failed or diverged.
    """
    supernet, own = subject.supernet, _folder(subject, folder)
    make_folder(own)
    with only_process(own / "further.lock", f"is training into {own}", "give another --out"):
        _check_settings(subject, own, schedule)
        networks = {each: _Network(supernet, each, own / each.key, enough, schedule) for each, enough in wanted.items()}
        missing = {each: network for each, network in networks.items() if not network.done()}
        if missing:
            settings = _check_settings(subject, own, schedule, supernet.training_data())
            trainings = {each: network.training() for each, network in missing.items()}
            write_json(own / "settings.json", {"checkpoint": str(real_path(subject.path)), **settings})
            train_all(trainings, jobs, lambda each, _: missing[each].finish())
    return {each: Curve(network.points) for each, network in networks.items()}


def check_further(subject: Subject, wanted: Mapping[Architecture, Enough], folder: Path, schedule: Schedule) -> None:
    """Raise what :func:`train_further` would before it trains, and train nothing."""
    supernet, own = subject.supernet, _folder(subject, folder)
    _check_settings(subject, own, schedule)
    for each, enough in wanted.items():
        network = _Network(supernet, each, own / each.key, enough, schedule)
        if not network.done():
            _check_settings(subject, own, schedule, supernet.training_data())
            with tempfile.TemporaryDirectory() as place:
                network.command(Path(place))
            return


def _folder(subject: Subject, folder: Path) -> Path:
    """Where the networks of a supernet are, in the folder of a study."""
    return folder / "further" / file_digest(subject.path)[:12]


def _check_settings(
    subject: Subject, own: Path, schedule: Schedule, data: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What networks are trained by, after a check that those which a folder holds were trained so; data only where
    some is read."""
    settings: dict[str, Any] = {
        "changes": dict(schedule.changes),
        "every": schedule.every,
        "most_updates": schedule.most,
        "examples": subject.supernet.examples_key(),
    }
    if data is not None:
        settings["data"] = dict(data)
    if any(own.glob(f"*/{LOG}")):  # else, what is noted has trained nothing
        check_settings(own / "settings.json", settings, "further training")
    return settings


_ONE = threading.Lock()
"""Networks are evaluated one after the other: hosts seed random numbers of the whole process."""


class _Network:
    """One subnet and its curve so far."""

    def __init__(
        self, trainer: Any, architecture: Architecture, folder: Path, enough: Enough, schedule: Schedule
    ) -> None:
        self.trainer, self.architecture, self.folder = trainer, architecture, folder
        self.enough, self.schedule = enough, schedule
        self.points: dict[int, Mapping[str, float]] = {0: trainer.evaluate(architecture)}
        if (folder / _CURVE).exists():
            self.points |= {int(record["updates"]): record["metrics"] for record in read_jsonl(folder / _CURVE)}
        for metrics in self.points.values():
            if lacking := [name for name in self.points[0] if name not in metrics]:
                raise DataError(
                    f"{folder / _CURVE}: its networks were evaluated without {', '.join(lacking)}, and are deleted;"
                    " give another --out for this metric"
                )

    def good(self) -> bool:
        return Curve(self.points).reached(self.enough) is not None

    def done(self) -> bool:
        """Whether nothing is left to train."""
        return self.good() or self.schedule.most in self.points or (self.folder / _ENDED).exists()

    def training(self) -> Training:
        """What trains it, until it is good enough."""
        make_folder(self.folder)
        return Training(self.command(real_path(self.folder)), self.folder, self.look)

    def command(self, folder: Path) -> Sequence[str]:
        """The command of this, in some folder."""
        schedule = self.schedule
        command: Sequence[str] = self.trainer.further_command(
            self.architecture, folder, schedule.changes, schedule.every, schedule.most
        )
        return command

    def finish(self) -> None:
        """Evaluate what the training has kept up to its end, and delete all of it."""
        if not self.look():
            write_json(self.folder / _ENDED, {"updates": max(self.points)})
        for path in self.trainer.kept_networks(self.folder).values():
            path.unlink(missing_ok=True)

    def look(self) -> bool:
        """Evaluate what was kept since, up to the first that is good enough; whether one is. What was written last
        stays, since the trainer may still copy it; what was kept before is deleted."""
        with _ONE:
            kept = sorted(self.trainer.kept_networks(self.folder).items())
            last = max((path for _, path in kept), key=lambda path: path.stat().st_mtime_ns, default=None)
            for updates, path in kept:
                if self.good():
                    break
                if updates not in self.points and not updates % self.schedule.every:
                    self._add(updates, self.trainer.evaluate_network(path))
                if path != last:
                    path.unlink(missing_ok=True)
        return self.good()

    def _add(self, updates: int, metrics: Mapping[str, float]) -> None:
        if bad := diverged(metrics):
            raise DataError(
                f"{self.folder}: {bad} after {updates} further updates, so that the training has diverged; give other"
                " settings with --set train.NAME=VALUE, and another --out"
            )
        append_jsonl(self.folder / _CURVE, {"updates": updates, "metrics": dict(metrics)})
        self.points[updates] = dict(metrics)
