"""Training runs of studies with fairseq: one architecture of a supernet, or a supernet with other experts.

``python -m fairseq_ext.supernets.training FOLDER DATA [OPTIONS] [NAME=VALUE ..]`` trains with the settings in FOLDER,
from scratch or with ``--inherited`` weights. It resumes from ``checkpoint_last.pt`` in FOLDER.
"""

from __future__ import annotations

import copy
import hashlib
import re
import sys
import zipfile
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from fairseq_ext.checkpoint import config_of, read_state, write_network
from fairseq_ext.compat import options_in
from fairseq_ext.data import options_of
from fairseq_ext.extraction import TASK_OPTIONS, write_subnet
from nas_core.errors import ConfigError, check_choice
from nas_core.files.reading import parse_yaml, real_path
from nas_core.layers import MoSConfig
from nas_core.layers.weights import named_tensors
from nas_core.options import add_options, arguments_of, read_options
from nas_core.space import Architecture
from nas_core.supernet.host import Supernet

SETTINGS = "settings.pt"
LAST = "checkpoint_last.pt"
_OF_THE_STUDY = (
    "data", "save_dir", "restore_file", "finetune_from_model", "user_dir", "arch", "subnet", "subnet_json",
    "search_space", "search_space_json",
)  # fmt: skip
_OF_A_SUPERNET = ("architecture_draw", "extremes", *TASK_OPTIONS)
_INHERITED = "inherited.pt"
_KEPT = re.compile(r"checkpoint(?:_\d+_(?P<updates>\d+)|\d+)\.pt")
"""Names of checkpoints within an epoch (with the number of updates), and at its end."""
_DECAY = "total_num_update"
"""Option with the length of the schedule ``polynomial_decay``."""
_FRESH = {
    "restore_file": LAST,
    "finetune_from_model": None,
    "no_epoch_checkpoints": True,
    "no_last_checkpoints": False,
    "no_save": False,
    "tensorboard_logdir": None,
    "wandb_project": None,
    "distributed_world_size": 1,
    "distributed_rank": 0,
    "distributed_init_method": None,
    "distributed_port": -1,
    "distributed_no_spawn": False,
    "device_id": 0,
    **{f"reset_{name}": False for name in ("dataloader", "lr_scheduler", "meters", "optimizer")},
}


@dataclass(frozen=True)
class Run:
    """Settings of a training run; by default, of a static network from scratch."""

    inherited: str = ""
    """Checkpoint with inherited weights with which the training starts."""
    every: int = 0
    """With inherited weights: number of updates between checkpoints."""
    most_updates: int = 0
    """With inherited weights: number of updates."""
    supernet: bool = False
    """Train a supernet instead of a static network."""

    def settings(self) -> dict[str, Any]:
        if not self.inherited:
            return {}
        return {
            "finetune_from_model": self.inherited,
            "max_update": self.most_updates,
            _DECAY: self.most_updates,
            "save_interval_updates": self.every,
            "max_epoch": 0,
            "stop_time_hours": 0,
            "patience": -1,
            "save_interval": 1,
            "no_epoch_checkpoints": False,
            "validate_after_updates": 0,
            "write_checkpoints_asynchronously": False,
            **{f"keep_{name}": -1 for name in ("interval_updates", "last_epochs", "best_checkpoints")},
        }


SCRATCH = Run()


def run_settings(folder: Path, data: str, changes: Mapping[str, str], run: Run = SCRATCH) -> DictConfig:
    """Return fairseq's settings for a training run.

    Args:
        changes: fairseq's name of a setting -> value as YAML, for settings that differ from those of the supernet.
            ``max_update`` also sets the length of the decay of the learning rate.

    Raises:
        ConfigError, UnknownChoiceError: a setting cannot be changed, does not exist, or has a value of the wrong type.
    """
    groups: dict[str, Any] = read_state(folder / SETTINGS)["cfg"]
    options = [options_in(group) for group in groups.values()]
    names = sorted({name for group in options for name in group if not name.startswith("_")})
    fixed = {*_OF_THE_STUDY, *run.settings(), *groups, *(() if run.supernet else _OF_A_SUPERNET)}
    typed = {}
    for name, text in changes.items():
        if name in fixed or name.startswith(("mos", "distributed_")):
            raise ConfigError(
                f"setting {name} cannot be changed, since the study or the supernet sets it; leave it out"
            )
        check_choice("setting of fairseq-train", name, names)
        typed[name] = _typed(name, text, [group[name] for group in options if name in group])
    if typed.get("max_update") and _DECAY not in typed:
        typed[_DECAY] = typed["max_update"]
    if "update_freq" not in changes:  # one process reads as many batches for an update as all of the supernet's
        processes = options_in(groups.get("distributed_training")).get("distributed_world_size") or 1
        frequencies = options_in(groups.get("optimization")).get("update_freq") or [1]
        typed["update_freq"] = [frequency * processes for frequency in frequencies]
    for group in options:
        for name, value in {**_FRESH, "data": data, "save_dir": str(folder), **typed, **run.settings()}.items():
            if name in group:
                group[name] = value
        if Path(str(group.get("user_dir"))).name == __package__.partition(".")[0]:
            group["user_dir"] = None  # this package, which is imported already
    return config_of(groups)  # type: ignore[no-any-return]


def _typed(name: str, text: str, current: Sequence[Any]) -> Any:
    """Convert a YAML value to the type of the current values (list, string or number)."""
    example = next((value for value in current if value is not None), None)
    if isinstance(example, str):
        return text
    examples = (example or [None]) if isinstance(example, list | tuple) else [example]
    value: Any = text
    with suppress(ValueError):
        value = parse_yaml(text)
    values = [_number(item, examples) for item in (value if isinstance(value, list) else [value])]
    numbers = isinstance(examples[0], int | float) and value is not None
    if (isinstance(value, list) and examples is not example) or (
        numbers and not all(isinstance(item, int | float) for item in values)
    ):
        raise ConfigError(f"setting {name} is {text!r}; expected a value of the same type as {example!r}")
    return values if examples is example else values[0]


def _number(value: Any, examples: Sequence[Any]) -> Any:
    # YAML does not read 1e-3 as a number.
    if isinstance(value, str):
        with suppress(ValueError):
            number = float(value)
            return int(number) if number.is_integer() and not isinstance(examples[0], float) else number
    return value


def digest(batches: Sequence[Any]) -> str:
    content = hashlib.sha256()
    for batch in batches:
        for name, tensor in named_tensors(batch):
            content.update(name.encode())
            content.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return content.hexdigest()[:16]


class TrainingSupernet(Supernet):
    """Base class of supernets whose networks can be trained by studies."""

    def _opened(self, path: Path) -> Any:
        opened: Any = type(self)(  # type: ignore[call-arg]
            path, self._data, self._subset, self._sentences, str(self.device), self.precision
        )
        opened._smoothing, opened._bleu = self._smoothing, self._bleu
        return opened

    def _command(self, folder: Path, changes: Mapping[str, str], run: Run = SCRATCH) -> list[str]:
        data = str(options_of(self.fairseq_task).data)
        run_settings(folder, data, changes, run)  # reports wrong settings before the command runs
        pairs = [f"{name}={value}" for name, value in changes.items()]
        return [sys.executable, "-m", "fairseq_ext.supernets.training", str(folder), data, *arguments_of(run), *pairs]

    # -- from scratch --------------------------------------------------------------------------------------------------

    def examples_key(self) -> str:
        return digest(self.batches())

    def training_data(self) -> dict[str, str]:
        folders = str(options_of(self.fairseq_task).data).split(":")
        return {"data": ":".join(str(real_path(folder)) for folder in folders)}

    def standalone_command(self, architecture: Architecture, folder: Path, changes: Mapping[str, str]) -> list[str]:
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
        if initial or options.get("converted"):
            raise ConfigError(
                f"the training of {self.path} started with the weights of {initial or 'a trained network'}, so its"
                " experts cannot be changed; give a supernet that was trained from scratch"
            )
        names = ("experts", "router_hidden", "router_layers", "router_temperature", "encoding")
        model |= {"mos": experts.kind, **{f"mos_{name}": getattr(experts, name) for name in names}}
        write_network(self._state, settings, {}, folder / SETTINGS)
        return self._command(folder, changes, Run(supernet=True))

    def trained_supernet(self, folder: Path) -> Any:
        same_name = folder / self.path.name
        return self._on_same_batches(same_name if same_name.exists() else folder / LAST)


def _updates(path: Path) -> int | None:
    history: Sequence[Mapping[str, Any]] = read_state(path, mmap=True).get("optimizer_history") or ()
    return int(history[-1]["num_updates"]) if history else None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = ArgumentParser("python -m fairseq_ext.supernets.training")
    parser.add_argument("folder", type=Path)
    parser.add_argument("data")
    parser.add_argument("changes", nargs="*", metavar="NAME=VALUE")
    add_options(parser, Run)
    options = parser.parse_intermixed_args(arguments)
    from fairseq.distributed import utils
    from fairseq_cli import train

    changes = dict(text.partition("=")[::2] for text in options.changes)
    last = options.folder / LAST
    if last.exists() and not zipfile.is_zipfile(last):  # fairseq was killed while it copied the file
        last.unlink()
    utils.call_main(run_settings(options.folder, options.data, changes, read_options(Run, options)), train.main)


if __name__ == "__main__":
    main()
