"""``python -m fairseq_ext.supernets.standalone FOLDER DATA [OPTIONS] [NAME=VALUE ..]``: fairseq's trainer for a study.

It trains one architecture of a supernet, or a supernet with other experts, with the checkpoint of settings in the
folder. Training starts from scratch, ``--inherited`` weights, or an interrupted run's ``checkpoint_last.pt``.
"""

from __future__ import annotations

import hashlib
import math
import zipfile
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from fairseq_ext.checkpoint import config_of, read_state
from fairseq_ext.compat import options_in
from fairseq_ext.extraction import TASK_OPTIONS
from nas_core.errors import ConfigError, unknown_choice
from nas_core.files.reading import parse_yaml
from nas_core.layers.weights import named_tensors

SETTINGS = "settings.pt"
LAST = "checkpoint_last.pt"
_OF_THE_STUDY = ("data", "save_dir", "restore_file", "finetune_from_model", "user_dir", "arch")
_NETWORK = ("subnet", "subnet_json", "search_space", "search_space_json")
_OF_A_SUPERNET = ("architecture_draw", "extremes")
_DECAY = "total_num_update"
"""Length of ``polynomial_decay``, by default that of the training; checkpoints store the number."""
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
    **{f"reset_{what}": False for what in ("dataloader", "lr_scheduler", "meters", "optimizer")},
}


@dataclass(frozen=True)
class Run:
    """A training; by default, of a static network from scratch."""

    inherited: str = ""
    """Checkpoint with the initial weights of a further training."""
    every: int = 0
    """Further training: updates between saved networks."""
    most_updates: int = 0
    """Further training: number of updates."""
    supernet: bool = False

    def options(self) -> list[str]:
        given = {f"--{name.replace('_', '-')}": value for name, value in asdict(self).items() if value}
        return [part for name, value in given.items() for part in ([name] if value is True else [name, str(value)])]

    def settings(self) -> dict[str, Any]:
        """Return fairseq's settings; a network at the end of an epoch is saved only once."""
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
            **{f"keep_{what}": -1 for what in ("interval_updates", "last_epochs", "best_checkpoints")},
        }


SCRATCH = Run()


def run_settings(folder: Path, data: str, changes: Mapping[str, str], run: Run = SCRATCH) -> DictConfig:
    """Return fairseq's settings of a training.

    Args:
        changes: settings that differ from the supernet's, by fairseq's names, with YAML values. ``max_update`` also
            sets the length of the learning rate's decay.

    Raises:
        ConfigError, UnknownChoiceError: a setting is fixed, does not exist, or has a value of the wrong type.
    """
    groups: dict[str, Any] = read_state(folder / SETTINGS)["cfg"]
    options = [options_in(group) for group in groups.values()]
    known = sorted({name for group in options for name in group if not name.startswith("_")})
    typed = {}
    for name, text in changes.items():
        if name in _OF_THE_STUDY or name in run.settings() or name.startswith("distributed_"):
            raise ConfigError(f"setting {name} of this training is set by the study; leave it out")
        if name.startswith("mos") or name in _NETWORK:
            raise ConfigError(f"setting {name} is of a supernet, and set by the study; leave it out")
        if not run.supernet and (name in _OF_A_SUPERNET or name in TASK_OPTIONS):
            raise ConfigError(f"setting {name} is of a supernet, not of its standalone networks; leave it out")
        if name in groups:
            raise ConfigError(
                f"setting {name} chooses a class of fairseq with options of its own; standalone networks have that of"
                " the supernet, leave it out"
            )
        if name not in known:
            raise unknown_choice("setting of fairseq-train", name, known)
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
    """Convert a YAML value to the type of the current values: list, text or number."""
    try:
        value = parse_yaml(text)
    except ValueError:
        raise ConfigError(f"setting {name} is {text!r}; expected a number, a text, or a list such as [0.1]") from None
    current = [item for item in current if item is not None]
    lists = [item for item in current if isinstance(item, list | tuple)]
    items = [item for row in lists for item in row] if lists else current
    texts = any(isinstance(item, str) for item in items)
    if texts and not lists:
        return text
    values = value if lists and isinstance(value, list) else [value]
    if not texts:
        values = [_number(item, items) for item in values]
    wrong = any(not isinstance(item, int | float) and (lists or item is not None) for item in values)
    if wrong and any(isinstance(item, int | float) for item in items):
        raise ConfigError(f"setting {name} is {text!r}; expected a value such as the supernet's, {current[0]!r}")
    return values if lists else values[0]


def _number(value: Any, current: Sequence[Any]) -> Any:
    """Convert text such as 1e-3, which YAML does not read as a number; keep other values."""
    if isinstance(value, str):
        with suppress(ValueError):
            number = float(value)
            if math.isfinite(number):
                return int(number) if number.is_integer() and float not in map(type, current) else number
    return value


def digest(batches: Sequence[Any]) -> str:
    content = hashlib.sha256()
    for batch in batches:
        for name, tensor in named_tensors(batch):
            content.update(name.encode())
            content.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return content.hexdigest()[:16]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = ArgumentParser("python -m fairseq_ext.supernets.standalone")
    parser.add_argument("folder", type=Path)
    parser.add_argument("data")
    parser.add_argument("changes", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--inherited", default="")
    parser.add_argument("--every", type=int, default=0)
    parser.add_argument("--most-updates", type=int, default=0)
    parser.add_argument("--supernet", action="store_true")
    given = parser.parse_intermixed_args(arguments)
    from fairseq.distributed import utils
    from fairseq_cli import train

    run = Run(given.inherited, given.every, given.most_updates, given.supernet)
    changes = dict(text.partition("=")[::2] for text in given.changes)
    last = given.folder / LAST
    if last.exists() and not zipfile.is_zipfile(last):  # fairseq was killed while it copied the file
        last.unlink()
    utils.call_main(run_settings(given.folder, given.data, changes, run), train.main)


if __name__ == "__main__":
    main()
