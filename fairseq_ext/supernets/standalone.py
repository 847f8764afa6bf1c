"""``python -m fairseq_ext.supernets.standalone FOLDER DATA [OPTIONS] [NAME=VALUE ..]``: fairseq's trainer for one
architecture of a supernet, or for a supernet with other experts, with the settings of the supernet's training.

The folder holds a checkpoint without weights, whose settings are those of the network. Its training begins from
scratch, from ``--inherited`` weights, or from ``checkpoint_last.pt`` of an interrupted run. One process trains, also
where several trained the supernet: an update then adds up the gradients of as many batches as all of them read.
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

from omegaconf import DictConfig, OmegaConf, open_dict
from torch import Tensor

from fairseq_ext.compat import options_in
from nas_core.errors import ConfigError, unknown_choice
from nas_core.files import parse_yaml
from nas_core.layers.weights import named_tensors

SETTINGS = "settings.pt"
"""The file of settings in a run's folder."""
_OF_THE_STUDY = ("data", "save_dir", "restore_file", "finetune_from_model", "user_dir", "arch")
_NETWORK = ("subnet", "subnet_json", "search_space", "search_space_json")
"""Options of models that say which network it is."""
_OF_A_SUPERNET = ("architecture_draw", "extremes")
"""Options of models that say how a supernet draws."""
_DECAY = "total_num_update"
"""How long ``polynomial_decay`` lasts: by default as long as the training, but checkpoints hold the number."""
_FRESH = {
    "restore_file": "checkpoint_last.pt",
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
"""Settings that are of one run, by their names in fairseq."""


@dataclass(frozen=True)
class Run:
    """What is trained; by default a static network from scratch."""

    inherited: str = ""
    """The checkpoint whose weights a further training begins with."""
    every: int = 0
    """In a further training: updates after which the network is kept each time."""
    most_updates: int = 0
    """In a further training: how many updates there are."""
    supernet: bool = False
    """Whether it is a supernet."""

    def options(self) -> list[str]:
        """The options of the command that say this."""
        given = {f"--{name.replace('_', '-')}": value for name, value in asdict(self).items() if value}
        return [part for name, value in given.items() for part in ([name] if value is True else [name, str(value)])]

    def settings(self) -> dict[str, Any]:
        """fairseq's settings that are of this run. A network at the end of an epoch is kept as such alone."""
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
"""A static network from scratch."""


def run_settings(folder: Path, data: str, changes: Mapping[str, str], run: Run = SCRATCH) -> DictConfig:
    """fairseq's settings of a training whose network's settings lie in a folder.

    Args:
        data: the folder of ``fairseq-preprocess``.
        changes: others than the supernet's, by fairseq's names (``max_update``, with which the learning rate also
            decays over so many updates, unless ``total_num_update`` is given); values as YAML.

    Raises:
        ConfigError, UnknownChoiceError: a setting that the study sets itself, that chooses a class of fairseq's, or
            that there is not; or a value of another kind than the supernet's.
    """
    from fairseq_ext.checkpoint import read_state
    from fairseq_ext.extraction import TASK_OPTIONS

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
    if "update_freq" not in changes:
        typed |= _same_batch(groups)
    for group in options:
        for name, value in {**_FRESH, "data": data, "save_dir": str(folder), **typed, **run.settings()}.items():
            if name in group:
                group[name] = value
        if Path(str(group.get("user_dir"))).name == __package__.partition(".")[0]:
            group["user_dir"] = None  # which is this package, imported already
    made = OmegaConf.create({**groups, "model": None}, flags={"allow_objects": True})
    with open_dict(made):
        made.model = groups["model"]
    return made


def _same_batch(groups: Mapping[str, Any]) -> dict[str, Any]:
    """How many batches one process reads for an update, so that it is of as many examples as the supernet's."""
    processes = options_in(groups.get("distributed_training")).get("distributed_world_size") or 1
    given = options_in(groups.get("optimization")).get("update_freq") or [1]
    return {"update_freq": [each * processes for each in given]}


def _typed(name: str, text: str, now: Sequence[Any]) -> Any:
    """A value as YAML says it, a list where there is one now, and a text where there is one.

    Raises:
        ConfigError: it is no YAML, or of another kind than all that there is now.
    """
    try:
        value = parse_yaml(text)
    except ValueError:
        raise ConfigError(f"setting {name} is {text!r}; expected a number, a text, or a list such as [0.1]") from None
    lists = [each for each in now if isinstance(each, list | tuple)]
    single = [one for each in lists for one in each] if lists else [each for each in now if each is not None]
    if not lists and any(isinstance(each, str) for each in single):
        return text
    given = value if lists and isinstance(value, list) else [value]
    read = [_number(each, single) for each in given]
    if any(isinstance(each, int | float) for each in single):
        wrong = [each for each in read if not isinstance(each, int | float) and (lists or each is not None)]
        if wrong:
            own = next(each for each in now if each is not None)
            raise ConfigError(f"setting {name} is {text!r}; expected a value such as the supernet's, {own!r}")
    return read if lists else read[0]


def _number(value: Any, now: Sequence[Any]) -> Any:
    """The number of a text, such as 1e-3, which YAML takes for one without a point; a whole one where none of those
    that there are now is a fraction. Other values as they are."""
    if not isinstance(value, str) or any(isinstance(each, str) for each in now):
        return value
    with suppress(ValueError):
        number = float(value)
        if math.isfinite(number):
            whole = number.is_integer() and not any(isinstance(each, float) for each in now)
            return int(number) if whole else number
    return value


def digest(batches: Sequence[Any]) -> str:
    """A digest of all tensors of batches: whether two networks are evaluated on the same."""
    found = hashlib.sha256()
    for batch in batches:
        for name, tensor in named_tensors(batch):
            found.update(name.encode())
            found.update(_bytes(tensor))
    return found.hexdigest()[:16]


def _bytes(tensor: Tensor) -> bytes:
    return bytes(tensor.detach().cpu().contiguous().numpy().tobytes())


def main(arguments: Sequence[str] | None = None) -> None:
    """Train; the arguments are those of the commands of :class:`fairseq_ext.supernets.training.TrainingSupernet`."""
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
    last = given.folder / "checkpoint_last.pt"
    if last.exists() and not zipfile.is_zipfile(last):  # fairseq was ended while it copied it
        last.unlink()
    utils.call_main(run_settings(given.folder, given.data, changes, run), train.main)


if __name__ == "__main__":
    main()
