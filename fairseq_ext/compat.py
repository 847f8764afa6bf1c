"""What fairseq needs to work with current torch, and what it would fail on without saying why."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch

from nas_core.errors import ConfigError, NasExtError
from nas_core.optional import require

_HALF_PRECISION = ("fp16", "memory_efficient_fp16", "bf16", "memory_efficient_bf16", "amp")


def prepare_fairseq() -> None:
    """Let torch >= 2.6 read fairseq's checkpoints: they hold an ``argparse.Namespace`` of settings and otherwise
    plain data."""
    require("fairseq", "training and decoding with fairseq", "fairseq")
    torch.serialization.add_safe_globals([argparse.Namespace])


def check_precision(args: Any) -> None:
    """fairseq's half-precision options crash or do nothing without CUDA.

    Raises:
        ConfigError: such an option is set and there is no CUDA device in use.
    """
    if torch.cuda.is_available() and not getattr(args, "cpu", False):
        return
    for option in _HALF_PRECISION:
        if getattr(args, option, False):
            raise ConfigError(
                f"--{option.replace('_', '-')} needs a CUDA device, this run is on the CPU;"
                " train in fp32 (drop the option)"
            )


@contextmanager
def one_line_errors() -> Iterator[None]:
    """fairseq's commands show a traceback for any exception; a wrong input ends with one line and exit code 2."""
    try:
        yield
    except NasExtError as error:
        _exit(error)


def _exit(error: NasExtError) -> NoReturn:
    import sys

    print(f"nas-ext: error: {error}", file=sys.stderr, flush=True)
    raise SystemExit(2) from None
