"""Fixes for fairseq with current versions of torch and numpy, and one-line errors for its commands."""

from __future__ import annotations

import argparse
import itertools
import logging
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any

import numpy
import torch
from torch.multiprocessing import ProcessExitedException

from nas_core import precision
from nas_core.errors import ConfigError, NasExtError
from nas_core.files.archives import check_archive
from nas_core.layers.weights import check_finite
from nas_core.optional import require

logger = logging.getLogger(__name__)

_WRONG_INPUT = 2
_HALF_PRECISION = ("memory_efficient_fp16", "fp16", "memory_efficient_bf16", "bf16", "amp")  # some set others
_MEANINGS = {
    "The dataset is empty": "all sentences of the data set are longer than --max-source-positions,"
    " --max-target-positions or --max-tokens; raise these",
    "Model file not found": "{reason}; check the path of the checkpoint",
    "Could not infer language pair": "the data folder has no files of a language pair; give a folder written by"
    " fairseq-preprocess",
    "since max_positions=": "{reason}; or train a model for longer sentences",
    "--finetune-from-model": "{reason}; give a checkpoint, such as one of 'nas-ext extract'",
}
"""Part of fairseq's message -> message for the user."""


def replace_function(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replace ``owner.name`` by ``make(original)``; a second call starts from the original again."""
    original = getattr(owner, name)
    original = getattr(original, "of_fairseq", original)
    replacement = make(original)
    replacement.of_fairseq = original
    setattr(owner, name, replacement)


def prepare_fairseq() -> None:
    """Import fairseq without changing logging, and fix it for current versions of torch and numpy."""
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)  # it advertises a package on import
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    require("fairseq", "training and decoding with fairseq", "fairseq")
    root.setLevel(level)  # one of fairseq's models configures the root logger on import
    root.handlers[:] = handlers
    # fairseq's attention gives torch masks of two types
    warnings.filterwarnings("ignore", "Support for mismatched key_padding_mask and attn_mask", UserWarning)
    from fairseq import checkpoint_utils
    from fairseq.data import language_pair_dataset, token_block_dataset

    torch.serialization.add_safe_globals([argparse.Namespace])
    replace_function(checkpoint_utils, "load_checkpoint_to_cpu", _check_loaded)
    if not hasattr(numpy, "compat"):  # removed in numpy 2; needed for --sample-break-mode eos and buckets of pairs
        language_pair_dataset.np = token_block_dataset.np = _Numpy()


def _check_loaded(load: Callable[..., Any]) -> Callable[..., Any]:
    def load_checkpoint_to_cpu(path: str, *args: Any, **kwargs: Any) -> Any:
        torch.serialization.add_safe_globals([argparse.Namespace])
        if Path(path).is_file():  # fairseq also reads remote files
            check_archive(path)
        state = load(path, *args, **kwargs)
        if isinstance(state.get("model"), dict):
            check_finite(state["model"], path)
        return state

    return load_checkpoint_to_cpu


class _Numpy:
    compat = SimpleNamespace(long=int)

    def __getattr__(self, name: str) -> Any:
        return getattr(numpy, name)


def in_groups(state: dict[str, Any]) -> dict[str, Any]:
    """Convert the settings in an old checkpoint to groups, as in checkpoints of fairseq since 2021."""
    from fairseq import checkpoint_utils
    from omegaconf import OmegaConf

    if state.get("cfg") or not hasattr(state.get("args"), "__dict__"):
        return state
    state = checkpoint_utils._upgrade_state_dict(state)
    groups = OmegaConf.to_container(state["cfg"], resolve=True, enum_to_str=True)
    return {**state, "args": None, "cfg": groups}


def options_in(group: Any) -> dict[str, Any]:
    """Return the options of a group as a dictionary; changes affect the group if it is a dict or namespace."""
    if isinstance(group, dict):
        return group
    return dict(group) if isinstance(group, Mapping) else getattr(group, "__dict__", {})


def check_training(args: Any) -> None:
    """Raise a ConfigError if the precision or distributed backend of a training run cannot be used."""
    # torch's DDP waits for gradients of all parameters, but a subnet uses only some.
    on_cpu = getattr(args, "cpu", False) or not torch.cuda.is_available()
    for option in (*_HALF_PRECISION, "tf32"):
        if on_cpu and getattr(args, option, False):
            raise ConfigError(
                f"--{option.replace('_', '-')} needs a CUDA device, but training runs on the CPU; leave it out to train"
                " in fp32"
            )
    if getattr(args, "tf32", False):
        precision.check_precision("tf32", "cuda")  # the current device, which fairseq has set
    if not with_torch_ddp(args):
        return
    backend = str(args.ddp_backend)
    if on_cpu:
        raise ConfigError(f"--ddp-backend {backend} needs a GPU for each worker; on the CPU give legacy_ddp")
    if not getattr(args, "find_unused_parameters", False):
        raise ConfigError(
            f"--ddp-backend {backend} expects gradients of all parameters, but a subnet uses only some; give"
            " --ddp-backend legacy_ddp, or add --find-unused-parameters"
        )


def with_torch_ddp(args: Any) -> bool:
    workers = int(getattr(args, "distributed_world_size", 1) or 1)
    if torch.distributed.is_available() and torch.distributed.is_initialized():  # torchrun and Slurm set no option
        workers = max(workers, torch.distributed.get_world_size())
    return str(getattr(args, "ddp_backend", "")) in ("c10d", "pytorch_ddp") and workers > 1


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Print a NasExtError in one line and exit with code 2, if a command of fairseq is running."""
    try:
        yield
    except NasExtError as error:
        if not in_fairseq_command():
            raise
        _print(str(error))
        raise SystemExit(_WRONG_INPUT) from None


def in_fairseq_command() -> bool:
    program = Path(sys.argv[0])
    return program.name.startswith("fairseq-") or program.parent.name == "fairseq_cli"


def is_named() -> bool:
    """Return True if the user imported this package or named it as ``--user-dir``, and False if only
    :mod:`nas_core.startup` imported it."""
    if not getattr(sys.modules.get("_nas_ext_start"), "registering", False):
        return True
    arguments = [word for argument in sys.argv for word in argument.split("=", 1)]
    folders = [folder for option, folder in itertools.pairwise(arguments) if option == "--user-dir"]
    return any(Path(folder).absolute() == Path(__file__).parent.absolute() for folder in folders)


def report_wrong_input() -> None:
    """Make fairseq's commands report invalid input in one line; unknown exceptions keep their traceback."""
    if not in_fairseq_command():
        return
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, ProcessExitedException) and error.exit_code == _WRONG_INPUT:
            return  # one of several workers, which has printed the reason
        message = wrong_input(error)
        if message is None:
            previous(kind, error, trace)
        else:
            _print(message)

    sys.excepthook = hook


def wrong_input(error: BaseException) -> str | None:
    """Return an error message if an exception means invalid input; None for other exceptions."""
    if isinstance(error, NasExtError):
        return str(error)
    calls = {frame.f_code.co_name: frame.f_locals for frame, _ in traceback.walk_tb(error.__traceback__)}
    reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
    if "load_checkpoint_to_cpu" in calls:
        path = calls["load_checkpoint_to_cpu"]["path"]
        return f"{path} cannot be read as a checkpoint ({reason}); it may be truncated, or not of fairseq"
    if isinstance(error, FileNotFoundError):
        return f"{error.filename or reason} does not exist; check the folder of the data and the names of its splits"
    if "cannot mmap an empty file" in reason and "load_langpair_dataset" in calls:
        arguments = calls["load_langpair_dataset"]
        return f"split {arguments['split']!r} in {arguments['data_path']} is empty; expected one sentence pair or more"
    return next((line.format(reason=reason) for text, line in _MEANINGS.items() if text in reason), None)


def _print(message: str) -> None:
    print(f"nas-ext: error: {message}", file=sys.stderr, flush=True)
