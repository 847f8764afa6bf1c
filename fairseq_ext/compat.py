"""What fairseq needs to work with current torch, and what it would fail on without saying why."""

from __future__ import annotations

import argparse
import functools
import itertools
import logging
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any

import numpy
import torch
from torch.multiprocessing import ProcessExitedException

from nas_core import precision
from nas_core.errors import ConfigError, NasExtError
from nas_core.files import check_archive
from nas_core.layers.weights import check_finite
from nas_core.optional import require

logger = logging.getLogger(__name__)

_REFUSED = 2
"""Exit code of a command with a wrong input."""
_HALF_PRECISION = ("memory_efficient_fp16", "fp16", "memory_efficient_bf16", "bf16", "amp")  # some set others


def prepare_fairseq() -> None:
    """Let torch >= 2.6 read fairseq's checkpoints: they hold an ``argparse.Namespace`` of settings and otherwise
    plain data."""
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)  # it advertises a package on import
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    require("fairseq", "training and decoding with fairseq", "fairseq")
    root.setLevel(level)  # one of its models makes every logger of a process talk, on import
    root.handlers[:] = handlers
    # fairseq's attention gives torch masks of two types, which it says at every start
    warnings.filterwarnings("ignore", "Support for mismatched key_padding_mask and attn_mask", UserWarning)
    _allow_settings()
    _cut_texts_with_numpy_2()


def _allow_settings() -> None:
    """Let torch read the settings in fairseq's checkpoints, now and before each one that fairseq reads: timm forbids
    them again for the whole process when it has read a checkpoint of its own. Each is checked before it is read, so
    that no training goes on with damaged weights."""
    from fairseq import checkpoint_utils

    torch.serialization.add_safe_globals([argparse.Namespace])
    load = checkpoint_utils.load_checkpoint_to_cpu
    if hasattr(load, "of_fairseq"):
        return

    @functools.wraps(load)
    def load_checkpoint_to_cpu(path: str, *args: Any, **kwargs: Any) -> Any:
        torch.serialization.add_safe_globals([argparse.Namespace])
        if Path(path).is_file():  # fairseq also reads from elsewhere
            check_archive(path)
        state = load(path, *args, **kwargs)
        if isinstance(state.get("model"), dict):
            check_finite(state["model"], path)
        return state

    load_checkpoint_to_cpu.of_fairseq = load  # type: ignore[attr-defined]
    checkpoint_utils.load_checkpoint_to_cpu = load_checkpoint_to_cpu


class _Numpy:
    """numpy with what fairseq still asks it for."""

    compat = SimpleNamespace(long=int)

    def __getattr__(self, name: str) -> Any:
        return getattr(numpy, name)


def _cut_texts_with_numpy_2() -> None:
    """Let fairseq cut a text into sentences (``--sample-break-mode eos``) and sort pairs into buckets: for both it uses
    a name that numpy 2 has no more."""
    from fairseq.data import language_pair_dataset, token_block_dataset

    if not hasattr(numpy, "compat"):
        language_pair_dataset.np = token_block_dataset.np = _Numpy()


def in_groups(state: dict[str, Any]) -> dict[str, Any]:
    """The content of a checkpoint, of one from before 2021 with its settings in groups."""
    from fairseq import checkpoint_utils
    from omegaconf import OmegaConf

    if state.get("cfg") or not hasattr(state.get("args"), "__dict__"):
        return state
    state = checkpoint_utils._upgrade_state_dict(state)
    groups = OmegaConf.to_container(state["cfg"], resolve=True, enum_to_str=True)
    return {**state, "args": None, "cfg": groups}


def options_in(group: Any) -> dict[str, Any]:
    """The options of a group of a checkpoint's settings by name, however fairseq stored it: those of a dict or a
    namespace can be changed in place. Empty where it is no group."""
    if isinstance(group, dict):
        return group
    return dict(group) if isinstance(group, Mapping) else getattr(group, "__dict__", {})


def check_precision(args: Any) -> None:
    """fairseq's half-precision options crash or do nothing without CUDA; TF32 is a number format of some GPUs.

    Raises:
        ConfigError: such an option is set and the device that is in use has no such numbers.
    """
    on_cpu = _on_cpu(args)
    for option in (*_HALF_PRECISION, "tf32"):
        if on_cpu and getattr(args, option, False):
            raise ConfigError(
                f"--{option.replace('_', '-')} needs a CUDA device, this run is on the CPU;"
                " train in fp32 (drop the option)"
            )
    if getattr(args, "tf32", False):
        precision.check_precision("tf32", "cuda")  # the current one, which fairseq has set by now


def train_in_tf32() -> None:
    """Compute products of float32 numbers in TF32 from now on, in this process; convolutions there are none."""
    torch.set_float32_matmul_precision("high")
    logger.info("products of float32 numbers are computed in TF32 (--tf32)")


def check_backend(args: Any) -> None:
    """torch's own DDP waits for every parameter in every backward pass, and a subnet uses some of them, unless it looks
    for those that were not used.

    Raises:
        ConfigError: several workers whose gradients would never be complete, or with a backend that needs GPUs.
    """
    if not with_torch_ddp(args):
        return
    backend = str(args.ddp_backend)
    if _on_cpu(args):
        raise ConfigError(f"--ddp-backend {backend} of fairseq needs a GPU for each worker; on the CPU give legacy_ddp")
    if not getattr(args, "find_unused_parameters", False):
        raise ConfigError(
            f"--ddp-backend {backend} expects every parameter in every update; give legacy_ddp, or add"
            " --find-unused-parameters"
        )


def with_torch_ddp(args: Any) -> bool:
    """Whether several workers exchange gradients by torch's own DDP."""
    return str(getattr(args, "ddp_backend", "")) in ("c10d", "pytorch_ddp") and _workers(args) > 1


def _on_cpu(args: Any) -> bool:
    return bool(getattr(args, "cpu", False)) or not torch.cuda.is_available()


def _workers(args: Any) -> int:
    """Processes that train together; torchrun and Slurm tell fairseq more than stands in the options."""
    given = int(getattr(args, "distributed_world_size", 1) or 1)
    joined = torch.distributed.is_available() and torch.distributed.is_initialized()
    return max(given, torch.distributed.get_world_size()) if joined else given


def check_sharing(args: Any, source: Any, target: Any) -> None:
    """Some architectures share all embeddings unless told otherwise.

    Raises:
        ConfigError: all embeddings are shared, and the two dictionaries are not one.
    """
    if getattr(args, "share_all_embeddings", False) and source != target:
        raise ConfigError(
            f"--share-all-embeddings, given or the default of --arch {getattr(args, 'arch', '')}, needs one joint"
            " dictionary, and those of source and target differ; run fairseq-preprocess with --joined-dictionary, or"
            " add --no-share-all-embeddings"
        )


@contextmanager
def one_line_errors() -> Iterator[None]:
    """fairseq's commands show a traceback for any exception; there, a wrong input ends with one line and exit code 2.
    Elsewhere the error is raised as it is."""
    try:
        yield
    except NasExtError as error:
        if not in_fairseq_command():
            raise
        _print(str(error))
        raise SystemExit(_REFUSED) from None


def in_fairseq_command() -> bool:
    """Whether this process was started as ``fairseq-train`` or another of fairseq's commands."""
    program = Path(sys.argv[0])
    return program.name.startswith("fairseq-") or program.parent.name == "fairseq_cli"


def is_named() -> bool:
    """Return whether the user named this plug-in, by an import or by ``--user-dir``. Where :mod:`nas_core.startup`
    registers it in a program of fairseq, the user did not."""
    if not getattr(sys.modules.get("_nas_ext_start"), "registering", False):
        return True
    words = [word for argument in sys.argv for word in argument.split("=", 1)]
    folders = [folder for option, folder in itertools.pairwise(words) if option == "--user-dir"]
    return any(Path(folder).absolute() == Path(__file__).parent.absolute() for folder in folders)


def report_wrong_input() -> None:
    """In fairseq's commands, let the wrong inputs on which fairseq itself fails end in one line as well.

    Anything else keeps its traceback: it is a defect.
    """
    if not in_fairseq_command():
        return
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, ProcessExitedException) and error.exit_code == _REFUSED:
            return  # a worker of several, which has said why
        message = wrong_input(error)
        if message is None:
            previous(kind, error, trace)
        else:
            _print(message)

    sys.excepthook = hook


def wrong_input(error: BaseException) -> str | None:
    """What an exception of fairseq's means for its user; None if it is no wrong input that is known."""
    calls = {frame.f_code.co_name: frame.f_locals for frame, _ in traceback.walk_tb(error.__traceback__)}
    reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
    if isinstance(error, NasExtError):
        return str(error)
    if "load_checkpoint_to_cpu" in calls:
        path = calls["load_checkpoint_to_cpu"]["path"]
        return f"{path} cannot be read as a checkpoint ({reason}); it may be truncated or of another program"
    if isinstance(error, FileNotFoundError):
        return f"no file {error.filename or reason}; check the folder of the data and the names of its splits"
    if "cannot mmap an empty file" in reason and "load_langpair_dataset" in calls:
        where = calls["load_langpair_dataset"]
        return f"split {where['split']!r} in {where['data_path']} is empty; it needs one sentence pair or more"
    if "The dataset is empty" in reason:
        return (
            "no sentence of the data set is left: all are longer than --max-source-positions, --max-target-positions or"
            " --max-tokens; raise these"
        )
    if "Model file not found" in reason:
        return f"{reason}; check the path of the checkpoint"
    if "Could not infer language pair" in reason:
        return "no languages found in the data folder; give the folder that fairseq-preprocess has written"
    if "since max_positions=" in reason:
        return f"{reason}; or train a model that reads longer sentences"
    if reason.startswith("--finetune-from-model"):
        return f"{reason}; give a checkpoint, such as one of 'nas-ext extract'"
    return None


def _print(message: str) -> None:
    print(f"nas-ext: error: {message}", file=sys.stderr, flush=True)
