"""``python -m examples.papers.average FOLDER --last 10 --out FILE``: average the checkpoints of the last epochs."""

from __future__ import annotations

import argparse
import pickle
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from nas_core.errors import CheckpointError, DataError, NasExtError
from nas_core.files.writing import atomic_output

_EPOCH = re.compile(r"checkpoint(\d+)\.pt")


def average(folder: Path, last: int, out: Path) -> list[Path]:
    """Write a checkpoint with the mean weights of the last epochs; return the averaged files."""
    epochs = sorted((int(match[1]), path) for path in folder.glob("*.pt") if (match := _EPOCH.fullmatch(path.name)))
    if last < 1 or len(epochs) < last:
        raise DataError(
            f"{folder} has checkpoints of {len(epochs)} epochs, but --last is {last}; train longer, keep more"
            " checkpoints (--keep-last-epochs), or average fewer"
        )
    paths = [path for _, path in epochs[-last:]]
    result = read_checkpoint(paths[-1])
    sums = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in result["model"].items()}
    for path in paths[:-1]:
        weights = read_checkpoint(path)["model"]
        if {name: tensor.shape for name, tensor in weights.items()} != {
            name: total.shape for name, total in sums.items()
        }:
            raise CheckpointError(
                f"{path} and {paths[-1]} contain different networks; give the folder of one training run"
            )
        for name, tensor in weights.items():
            if tensor.is_floating_point():
                sums[name] += tensor.double()
    for name, tensor in result["model"].items():
        if tensor.is_floating_point():
            result["model"][name] = (sums[name] / last).to(tensor.dtype)
    with atomic_output(out) as temporary:
        torch.save(result, temporary)
    return paths


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint of fairseq without executing code in it."""
    try:
        torch.serialization.add_safe_globals([argparse.Namespace])
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(state["model"], dict):
            raise KeyError("model")
    except (RuntimeError, EOFError, ValueError, OSError, KeyError, TypeError, pickle.UnpicklingError) as error:
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise CheckpointError(f"{path} cannot be read as a fairseq checkpoint ({reason}); it may be damaged") from None
    return state


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "python -m examples.papers.average", description="Average the checkpoints of a training run."
    )
    parser.add_argument("folder", type=Path, help="--save-dir of fairseq-train")
    parser.add_argument("--last", type=int, default=10, metavar="N", help="number of epochs to average (default: 10)")
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    options = parser.parse_args(arguments)
    try:
        paths = average(options.folder, options.last, options.out)
    except NasExtError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{options.out}: mean of {', '.join(path.name for path in paths)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
