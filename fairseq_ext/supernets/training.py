"""Training of one architecture of a supernet from scratch with fairseq, for studies.

``python -m fairseq_ext.supernets.training FOLDER DATA [NAME=VALUE ..]`` trains with the settings in FOLDER. It resumes
from ``checkpoint_last.pt`` in FOLDER.
"""

from __future__ import annotations

import hashlib
import sys
import zipfile
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from fairseq_ext.checkpoint import config_of, read_state
from fairseq_ext.compat import options_in
from fairseq_ext.data import options_of
from fairseq_ext.extraction import TASK_OPTIONS, write_subnet
from nas_core.errors import ConfigError, check_choice
from nas_core.files.reading import parse_yaml, real_path
from nas_core.layers.weights import named_tensors
from nas_core.space import Architecture
from nas_core.supernet.host import Supernet

SETTINGS = "settings.pt"
LAST = "checkpoint_last.pt"
_STUDY_OPTIONS = (
    "data", "save_dir", "restore_file", "finetune_from_model", "user_dir", "arch", "subnet", "subnet_json",
    "search_space", "search_space_json",
)  # fmt: skip
_SUPERNET_OPTIONS = ("architecture_draw", "extremes", *TASK_OPTIONS)
_DECAY = "total_num_update"
"""Option with the length of the schedule ``polynomial_decay``."""
_RUN_OPTIONS = {
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


def run_settings(folder: Path, data: str, changes: Mapping[str, str]) -> DictConfig:
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
    fixed = {*_STUDY_OPTIONS, *groups, *_SUPERNET_OPTIONS}
    parsed = {}
    for name, text in changes.items():
        if name in fixed or name.startswith(("mos", "distributed_")):
            raise ConfigError(
                f"setting {name} cannot be changed, since the study or the supernet sets it; leave it out"
            )
        check_choice("setting of fairseq-train", name, names)
        parsed[name] = _parse_value(name, text, [group[name] for group in options if name in group])
    if parsed.get("max_update") and _DECAY not in parsed:
        parsed[_DECAY] = parsed["max_update"]
    if "update_freq" not in changes:  # one process reads as many batches for an update as all of the supernet's
        processes = options_in(groups.get("distributed_training")).get("distributed_world_size") or 1
        frequencies = options_in(groups.get("optimization")).get("update_freq") or [1]
        parsed["update_freq"] = [frequency * processes for frequency in frequencies]
    for group in options:
        for name, value in {**_RUN_OPTIONS, "data": data, "save_dir": str(folder), **parsed}.items():
            if name in group:
                group[name] = value
        if Path(str(group.get("user_dir"))).name == __package__.partition(".")[0]:
            group["user_dir"] = None  # this package, which is imported already
    return config_of(groups)  # type: ignore[no-any-return]


def _parse_value(name: str, text: str, current: Sequence[Any]) -> Any:
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

    def examples_key(self) -> str:
        return digest(self.batches())

    def training_data(self) -> dict[str, str]:
        folders = str(options_of(self.fairseq_task).data).split(":")
        return {"data": ":".join(str(real_path(folder)) for folder in folders)}

    def standalone_command(self, architecture: Architecture, folder: Path, changes: Mapping[str, str]) -> list[str]:
        write_subnet(self._state, {}, self.space.validate(architecture), folder / SETTINGS)
        data = str(options_of(self.fairseq_task).data)
        run_settings(folder, data, changes)  # reports wrong settings before the command runs
        pairs = [f"{name}={value}" for name, value in changes.items()]
        return [sys.executable, "-m", "fairseq_ext.supernets.training", str(folder), data, *pairs]

    def evaluate_standalone(self, folder: Path) -> tuple[dict[str, float], str]:
        trained: Any = type(self)(  # type: ignore[call-arg]
            folder / LAST, self._data, self._subset, self._sentences, str(self.device), self.precision
        )
        trained._smoothing, trained._bleu = self._smoothing, self._bleu
        return trained.evaluate(trained.space.largest()), trained.examples_key()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = ArgumentParser("python -m fairseq_ext.supernets.training")
    parser.add_argument("folder", type=Path)
    parser.add_argument("data")
    parser.add_argument("changes", nargs="*", metavar="NAME=VALUE")
    options = parser.parse_args(arguments)
    from fairseq.distributed import utils
    from fairseq_cli import train

    changes = dict(text.partition("=")[::2] for text in options.changes)
    last = options.folder / LAST
    if last.exists() and not zipfile.is_zipfile(last):  # fairseq was killed while it copied the file
        last.unlink()
    utils.call_main(run_settings(options.folder, options.data, changes), train.main)


if __name__ == "__main__":
    main()
