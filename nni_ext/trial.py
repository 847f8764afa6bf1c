"""NNI trial that evaluates an architecture with inherited weights of a supernet.

Use it as ``trialCommand: python -m nni_ext.trial --checkpoint supernet.pt``. The search space of the experiment must be
that of the supernet. With ``--architecture FILE`` it works outside an experiment.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError, NasExtError, unknown_choice
from nas_core.latency import load_latency_model
from nas_core.precision import PRECISIONS
from nas_core.search.checkpoint import CheckpointEvaluation
from nas_core.space import Architecture
from nas_core.space.labels import architecture_of
from nas_core.supernet.host import Supernet, open_supernet
from nni_ext.compat import nni_module

_FEATURE = "running a trial of NNI"
INTERMEDIATE = 10
"""Largest number of intermediate results."""


def evaluate(
    supernet: Supernet,
    architecture: Architecture,
    latency_model: str | None = None,
    report: Any = None,
    metric: str = "loss",
) -> dict[str, float]:
    """Return the final result of a trial: metrics, costs and, with a latency model, ``latency_ms``.

    Args:
        latency_model: file of ``nas-ext latency fit``.
        report: callback for intermediate results: fraction of the data, metrics.
        metric: metric that is also returned as ``default``, the value that NNI shows.
    """
    model = load_latency_model(latency_model, "genes", supernet.space) if latency_model else None
    metrics = CheckpointEvaluation(supernet, model)(architecture, report)
    if metric not in metrics:
        raise unknown_choice("--metric", metric, list(metrics))
    return {"default": metrics[metric], **metrics}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return exit code 0, or 2 after an error."""
    options = parser().parse_args(argv)
    try:
        _run(options)
    except NasExtError as error:
        print(f"nni_ext.trial: error: {error}", file=sys.stderr)
        return 2
    return 0


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="python -m nni_ext.trial", description=__doc__.partition("\n")[0])
    result.add_argument("--checkpoint", required=True, help="checkpoint of a trained supernet")
    result.add_argument("--data", help="data folder; default: the one used for training the supernet")
    result.add_argument("--valid-subset", default="valid", help="split used for the evaluation; default: valid")
    result.add_argument("--valid-samples", type=int, help="number of examples to evaluate; default: all")
    result.add_argument(
        "--metric", default="loss", help="metric shown on NNI's web page: loss (default), or top1 for images"
    )
    result.add_argument("--latency-model", help="file of 'nas-ext latency fit', for the metric latency_ms")
    result.add_argument("--device", default="cpu", help="device: cpu (default), cuda, cuda:1")
    result.add_argument("--precision", choices=PRECISIONS, default=PRECISIONS[0], help="precision of the evaluation")
    result.add_argument("--architecture", type=Path, help="architecture file to evaluate outside an experiment")
    return result


def _run(options: argparse.Namespace) -> None:
    nni = nni_module("nni", _FEATURE)
    parameters = nni.get_next_parameter() if options.architecture is None else None
    if not parameters and options.architecture is None:
        raise ConfigError(
            "the command does not run in an NNI experiment; give an architecture file with --architecture"
        )
    if parameters and options.valid_subset.startswith("test"):
        raise ConfigError(
            f"--valid-subset {options.valid_subset} is test data, which a search must not use; give a validation set"
        )
    supernet = open_supernet(
        options.checkpoint,
        data=options.data,
        valid_subset=options.valid_subset,
        valid_samples=options.valid_samples,
        device=options.device,
        **({} if options.precision == PRECISIONS[0] else {"precision": options.precision}),
    )
    space = supernet.space
    architecture = architecture_of(space, parameters) if parameters else Architecture.load(options.architecture)
    report = _Progress(nni, options.metric) if parameters else None
    architecture = space.validate(architecture)
    result = evaluate(supernet, architecture, options.latency_model, report, options.metric)
    if parameters:
        nni.report_final_result(result)
    print(json.dumps(result if options.precision == PRECISIONS[0] else {**result, "precision": options.precision}))


class _Progress:
    """Callback that reports an intermediate result to NNI after each tenth of the data."""

    def __init__(self, nni: Any, metric: str) -> None:
        self._nni, self._metric, self._next = nni, metric, 0.0

    def __call__(self, share: float, metrics: Mapping[str, float]) -> None:
        if share >= self._next and self._metric in metrics:
            self._next = share + 1 / INTERMEDIATE
            self._nni.report_intermediate_result({"default": metrics[self._metric], **metrics})


if __name__ == "__main__":
    sys.exit(main())
